package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEveryOtherRoundGoesBackwards(t *testing.T) {
	all := []string{"a", "b", "c"}
	assert.Equal(t, []string{"a", "b", "c"}, InRound(0, all))
	assert.Equal(t, []string{"c", "b", "a"}, InRound(1, all))
	assert.Equal(t, []string{"a", "b", "c"}, InRound(2, all))
}
