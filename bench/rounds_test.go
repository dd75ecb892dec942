package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEveryOtherRoundGoesBackwards(t *testing.T) {
	all := []string{"a", "b", "c"}
	assert.Equal(t, []string{"a", "b", "c"}, inRound(0, all))
	assert.Equal(t, []string{"c", "b", "a"}, inRound(1, all))
	assert.Equal(t, []string{"a", "b", "c"}, inRound(2, all))
}
