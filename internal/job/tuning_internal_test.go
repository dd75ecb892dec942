package job

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/tuning"
)

// Ranks agree on how collectives send their messages, and on nothing else of a Tuning.
func TestTuningOfAllRanks(t *testing.T) {
	agreed := map[string]string{
		"Algorithm": "Tuning.Algorithm=1",
		"NoPipes":   "Tuning.Algorithm=0 NoPipes",
		"NoCells":   "Tuning.Algorithm=0 NoCells",
		"NoStaging": "Tuning.Algorithm=0 NoStaging",
	}
	none := new(tuning.Tuning)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[tuning.Tuning]()) {
		one, err := newSettings([]Option{Tune(func(t *tuning.Tuning) {
			switch v := reflect.ValueOf(t).Elem().FieldByIndex(field.Index); v.Kind() {
			case reflect.Bool:
				v.SetBool(true)
			case reflect.Int:
				v.SetInt(1)
			default:
				v.SetUint(1)
			}
		})})
		require.NoError(t, err)
		require.NotEqual(t, *none, one.tuning, field.Name)
		want, all := agreed[field.Name]
		if !all {
			want = tuningTerm(none)
		}
		require.Equal(t, want, tuningTerm(&one.tuning), field.Name)
		delete(agreed, field.Name)
	}
	require.Empty(t, agreed)
}

// An Algorithm that there is not is an error, and not a panic of the first collective.
func TestNoSuchAlgorithm(t *testing.T) {
	of := func(algorithm tuning.Algorithm) []Option {
		return []Option{Tune(func(t *tuning.Tuning) { t.Algorithm = algorithm })}
	}
	_, err := newSettings(of(tuning.Algorithms - 1))
	require.NoError(t, err)
	_, err = newSettings(of(tuning.Algorithms))
	require.ErrorIs(t, err, ErrArgument)
	require.ErrorContains(t, err, "algorithm 4 of collectives, allowed are 0 to 3")
}

// Rings are used by cost, which virtual time has none of, always or never.
func TestUseOfRings(t *testing.T) {
	for rings, want := range map[tuning.Rings]map[bool]bool{
		tuning.RingsByCost: {false: true, true: false},
		tuning.RingsAlways: {false: true, true: true},
		tuning.RingsNever:  {false: false, true: false},
	} {
		s, err := newSettings([]Option{Tune(func(t *tuning.Tuning) { t.Rings = rings })})
		require.NoError(t, err)
		for virtual, uses := range want {
			require.Equal(t, uses, s.usesRings(virtual), "%d, virtual %v", rings, virtual)
		}
	}
}
