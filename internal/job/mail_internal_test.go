package job

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/progress"
)

// However a rank mixes long letters with short ones that are not taken, what is kept of their memory is bounded by what
// one rank may have sent.
func TestSpareLettersAreBounded(t *testing.T) {
	const most, long = 70, 1000
	w := &World{endpoint: &endpoint{linkLetter: 1024, engine: progress.New(progress.Config{})}, job: &job{}, size: 2, links: make([]atomic.Pointer[Link], 2)}
	o := &w.post
	o.open(w)
	want := header{signature: signature{call: callBarrier, number: 3, element: 8}, length: 1 + (most+1)*long + most*(most+1)/2}
	p := &parcel{rank: 1, header: want, data: make([]byte, want.length), active: true}
	from := &Link{world: w, rank: 1}
	first := make([]byte, headerBytes+1)
	want.encode(first)
	require.NoError(t, o.mailed(from, first))
	// What is kept is used again from the end. So a long letter takes the memory of a short one, and is left at the bottom.
	for short := most; short >= 0; short-- {
		require.NoError(t, o.mailed(from, make([]byte, long)))
		for range short {
			require.NoError(t, o.mailed(from, []byte{1}))
		}
		_, _, err := o.collect(p)
		require.NoError(t, err)
		o.unwant(p)
		// The rank is told what was taken.
		o.box(1).told = o.box(1).took
	}
	kept := 0
	for _, letter := range o.spare {
		kept += cap(letter)
	}
	require.LessOrEqual(t, kept, int(w.mailWindow()))
	require.NotEmpty(t, o.spare)
}

// A contact is no longer than one that is exchanged otherwise.
func TestLongContactOfASurvivor(t *testing.T) {
	w := quiet(t)[0]
	l, err := w.Link(1)
	require.NoError(t, err)
	for _, kind := range []uint8{kindPropose, kindSurvivor} {
		require.NoError(t, w.serveShrink(l, &Message{Kind: kind}, make([]byte, longestText)))
		require.ErrorIs(t, w.serveShrink(l, &Message{Kind: kind}, make([]byte, longestText+1)), ErrMessage)
	}
}
