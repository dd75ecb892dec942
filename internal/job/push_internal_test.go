package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/verbs"
)

// A scarceDevice registers nothing.
type scarceDevice struct{ verbs.Device }

func (scarceDevice) RegisterMemory([]byte, verbs.Access) (verbs.MemoryRegion, error) {
	return nil, verbs.ErrShortage
}

// A Push that had no memory to ask must not have the next one take for asked what was told.
func TestPushAgain(t *testing.T) {
	worlds := quiet(t, Tune(func(t *tuning.Tuning) { t.NoInline = true }))
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
	free, cards := w.letters.free, w.letters.cards
	var scarce [cardKinds]*card
	for i, c := range cards {
		if c != nil {
			scarce[i] = &card{kind: c.kind, attributes: c.attributes, device: scarceDevice{c.device}}
		}
	}
	w.letters.free, w.letters.cards = nil, &scarce
	_, ok := l.Push()
	require.False(t, ok)
	// There is some again.
	w.letters.free, w.letters.cards = free, cards
	require.NoError(t, l.fault())
	asked := l.asked
	m, ok := l.Push()
	require.True(t, ok)
	require.Greater(t, m.asked, asked, "nothing was asked for what was told")
}
