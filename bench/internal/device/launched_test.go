package device

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRanksDoNotInheritTheirLauncher(t *testing.T) {
	assert.Equal(t, []string{"A=1"}, WithoutLauncher([]string{"PMI_FD=3", "A=1", "PMI_RANK=0", "RMA_DEVICE=shm"}))
}
