package proof

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// guest is a connection that proves nothing: it leaves when it is closed.
type guest struct {
	room  *Room
	ended chan struct{}
	after time.Duration
	left  error
}

func enter(t *testing.T, r *Room) *guest {
	t.Helper()
	g, began := &guest{room: r, ended: make(chan struct{})}, time.Now()
	require.True(t, r.Enter(g))
	go func() {
		<-g.ended
		g.after = time.Since(began)
		g.left = r.Leave(g)
	}()
	return g
}

func (g *guest) Close() error {
	select {
	case <-g.ended:
	default:
		close(g.ended)
	}
	return nil
}

func (g *guest) isIn() bool {
	synctest.Wait()
	select {
	case <-g.ended:
		return false
	default:
		return true
	}
}

// While nobody waits, nobody has to go.
func TestRoomIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(2)
		one, two := enter(t, r), enter(t, r)
		time.Sleep(time.Hour)
		require.True(t, one.isIn())
		require.True(t, two.isIn())
		r.Close()
	})
}

// Of those who keep others waiting the oldest goes, after its share and no sooner.
func TestRoomEndsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(2)
		one := enter(t, r)
		time.Sleep(share / 2)
		two := enter(t, r)
		began := time.Now()
		three := enter(t, r)
		require.False(t, one.isIn())
		require.GreaterOrEqual(t, one.after, share)
		require.ErrorIs(t, one.left, ErrCrowded)
		require.Less(t, time.Since(began), share, "who waits waits no longer than the oldest's share")
		require.True(t, two.isIn())
		four := enter(t, r)
		require.False(t, two.isIn())
		require.GreaterOrEqual(t, two.after, share)
		require.True(t, three.isIn())
		require.True(t, four.isIn())
		r.Close()
	})
}

// A seat that becomes free is taken at once, and nobody has to go for it.
func TestRoomWaitsForSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(2)
		one, two := enter(t, r), enter(t, r)
		go func() {
			time.Sleep(share / 2)
			_ = two.Close()
		}()
		began := time.Now()
		enter(t, r)
		require.Equal(t, share/2, time.Since(began))
		require.False(t, two.isIn())
		require.NoError(t, two.left)
		require.True(t, one.isIn())
		r.Close()
	})
}

// Who is in a room that is closed is ended, and so is who waits for a seat or comes
// later.
func TestRoomCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(1)
		in := enter(t, r)
		go func() {
			time.Sleep(share / 2)
			r.Close()
			r.Close()
		}()
		waits, late := &guest{ended: make(chan struct{})}, &guest{ended: make(chan struct{})}
		require.False(t, r.Enter(waits))
		require.False(t, r.Enter(late))
		for _, g := range []*guest{in, waits, late} {
			require.False(t, g.isIn())
		}
	})
}
