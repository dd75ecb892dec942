package window

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
)

// TestDescriptions looks at parts that a rank which keeps no rules may describe.
func TestDescriptions(t *testing.T) {
	region := func(length uint64) job.Places {
		return job.Places{verbs.RemoteRegion{Address: 4096, Length: length, RKey: 1}}
	}
	float := reduce.KindOf[float64]()
	for _, test := range []struct {
		name string
		d    description
		kind reduce.Kind
		ok   bool
	}{
		{"a part", description{bytes: 80, alignment: 4096, data: region(80)}, float, true},
		{"no part", description{bytes: 0, alignment: 4096}, float, true},
		{"wide elements", description{bytes: 32, alignment: 8, data: region(32)}, reduce.KindOf[complex128](), true},
		{"bytes at an odd address", description{bytes: 3, alignment: 1, data: region(3)}, reduce.KindOf[uint8](), true},
		{"longer than its region", description{bytes: 4096, alignment: 4096, data: region(80)}, float, false},
		{"shorter than its region", description{bytes: 80, alignment: 4096, data: region(4096)}, float, false},
		{"a length that is negative as a count", description{bytes: 1 << 63, alignment: 4096, data: region(1 << 63)}, float, false},
		{"half an element", description{bytes: 84, alignment: 4096, data: region(84)}, float, false},
		{"an odd address", description{bytes: 80, alignment: 1, data: region(80)}, float, false},
		{"no alignment", description{bytes: 80, data: region(80)}, float, false},
		{"two alignments", description{bytes: 80, alignment: 24, data: region(80)}, float, false},
	} {
		err := test.d.check(test.kind)
		if test.ok {
			require.NoError(t, err, test.name)
		} else {
			require.ErrorIs(t, err, errDescription, test.name)
		}
	}
}

// TestMappedMemory looks that what is mapped is what was described.
func TestMappedMemory(t *testing.T) {
	memory := bytesOf(make([]uint64, 11))
	d := exposure{bytes: 80, alignment: 8}
	require.NoError(t, d.checkMapped(memory[:80]))
	require.NoError(t, d.checkMapped(memory[8:]))
	require.ErrorIs(t, d.checkMapped(memory[:72]), errDescription)
	require.ErrorIs(t, d.checkMapped(memory), errDescription)
	require.ErrorIs(t, d.checkMapped(memory[1:81]), errDescription)
	d.alignment = 1
	require.NoError(t, d.checkMapped(memory[1:81]))
}

// Every set of promises is that of the settings which it stands for, and so is the offer of it.
func TestPromises(t *testing.T) {
	for p := range promises(1 << len(promiseNames)) {
		s := p.settings()
		require.Equal(t, p, promisesOf(&s))
		offered, _, err := parseOffer((&core{hints: s}).offer(new(description)))
		require.NoError(t, err)
		require.Equal(t, s, offered)
	}
}
