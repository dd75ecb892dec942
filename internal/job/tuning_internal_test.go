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
		"NoNotes":   "Tuning.Algorithm=0 NoNotes",
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
