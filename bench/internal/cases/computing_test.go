package cases

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheTargetComputesEveryIteration(t *testing.T) {
	b := &Buffers{seed: 88172645463325252}
	for range 1000 {
		b.spot()
	}
	state := uint64(88172645463325252)
	arithmetic(&state, 1000)
	assert.Equal(t, b.seed, state)
	assert.Equal(t, 500, pace(1000).iterations(watched))
}

func TestRandomPlacesAreTheCPrograms(t *testing.T) {
	b := &Buffers{seed: 88172645463325252}
	var got []int
	for range 4 {
		got = append(got, b.spot()*8)
	}
	// As printed by spot of peers/mpi_rma.c.
	assert.Equal(t, []int{49327488, 23473368, 43308672, 22306600}, got)
}
