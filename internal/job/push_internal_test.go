package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/verbs"
)

// A scarceDevice registers nothing while it is scarce.
type scarceDevice struct {
	verbs.Device
	scarce *bool
}

func (d scarceDevice) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	if *d.scarce {
		return nil, verbs.ErrShortage
	}
	return d.Device.RegisterMemory(memory, access)
}

// A Push that had no memory to ask must not have the next one take for asked what was told.
func TestPushAgain(t *testing.T) {
	var scarce bool
	cards := over(func(_ int, d verbs.Device) verbs.Device { return scarceDevice{d, &scarce} })
	worlds := quiet(t, append(cards, Tune(func(t *tuning.Tuning) { t.NoInline = true }))...)
	w := worlds[0]
	defer worlds[1].Serve(7, new(echo))()
	l, err := w.Link(1)
	require.NoError(t, err)
	require.NoError(t, l.Flush(t.Context()))
	require.NoError(t, l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 1}, nil))
	for range 1000 {
		for _, w := range worlds {
			w.Poll()
		}
		l.Post() // it has left
	}
	// No memory for letters.
	scarce = true
	var letters []registration.Buffer
	for {
		one, _, err := w.registry.Eager().Take()
		if err != nil {
			break
		}
		letters = append(letters, one)
	}
	_, ok := l.Push()
	require.False(t, ok)
	// There is some again.
	scarce = false
	for i := range letters {
		letters[i].Release()
	}
	require.NoError(t, l.fault())
	asked := l.asked
	m, ok := l.Push()
	require.True(t, ok)
	require.Greater(t, m.asked, asked, "nothing was asked for what was told")
}
