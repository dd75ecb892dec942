package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLoadOfTheMachine(t *testing.T) {
	began := Usage{At: time.Unix(100, 0), all: 50 * time.Second, ours: 10 * time.Second, known: true}
	for _, test := range []struct {
		after Usage
		cores float64
		known bool
	}{
		{Usage{time.Unix(110, 0), 65 * time.Second, 15 * time.Second, true}, 1, true},
		{Usage{time.Unix(110, 0), 55 * time.Second, 16 * time.Second, true}, 0, true},
		{Usage{time.Unix(110, 0), 0, 15 * time.Second, false}, 0, false},
		{Usage{time.Unix(100, 1e8), 51 * time.Second, 10 * time.Second, true}, 0, false},
	} {
		cores, known := test.after.OthersSince(began)
		assert.Equal(t, test.known, known)
		assert.InDelta(t, test.cores, cores, 1e-9)
	}
	quiet := Load{Began: "0.01", Ended: "1.00", others: []float64{0.01, 0.1}, most: "x"}
	_, busy := quiet.Describe(2)
	assert.False(t, busy)
	text, busy := (&Load{}).Describe(2)
	assert.False(t, busy)
	assert.Equal(t, "The system does not report its load.", text)
}
