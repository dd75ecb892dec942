package hashtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// serveTable serves a table from a job of one rank while body runs.
func serveTable(ctx context.Context, l *world.Listener, config Config, body func(s *script, t *Table), options ...window.Option) error {
	return world.Run(ctx, 1, scripted(func(s *script) {
		t := s.table(config, options...)
		served := make(chan error)
		go func() { served <- t.Serve(s.Ctx, l, "table") }()
		err := jobtest.Checked(func() { body(s, t) })
		s.OK(errors.Join(err, l.Close(), <-served))
		s.close(t)
	}))
}

// visitTable attaches to the served table.
func visitTable(ctx context.Context, address string, body func(s *script, t *Table), options ...world.Option) error {
	w, err := world.Dial(ctx, address, append(options, world.WithPeerTimeout(await.Limit), world.WithoutKey())...)
	if err != nil {
		return err
	}
	t, err := Attach(ctx, w, "table")
	if err != nil {
		return errors.Join(err, w.Close())
	}
	err = scripted(func(s *script) { body(s, t) })(ctx, w)
	return errors.Join(err, t.Close(), w.Close())
}

// The serving process and its clients work in little space on keys of their own and on a counter of all.
func TestServedTable(t *testing.T) {
	const clients = 3
	operations := upTo(500, 2000)
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	work := func(s *script, table *Table, writer int) {
		write(s, table, writer, 8, operations, 100)
		for range operations / 8 {
			_, err := table.Add(s.Ctx, "all", 1)
			s.OK(err)
		}
	}
	require.NoError(t, serveTable(t.Context(), l, Config{Slots: 8, RecordBytes: 128 << 10, Clients: clients}, func(s *script, table *Table) {
		var working sync.WaitGroup
		failed := make([]error, clients)
		for client := range clients {
			working.Go(func() {
				failed[client] = visitTable(s.Ctx, l.Addr().String(), func(s *script, table *Table) { work(s, table, 10+client) })
			})
		}
		work(s, table, 0)
		working.Wait()
		s.OK(errors.Join(failed...))
		sum, _, err := table.Count(s.Ctx, "all")
		s.OK(err)
		s.Check(sum == uint64((clients+1)*(operations/8)), "%d were added", sum)
	}))
}

// A client knows only an index that is gone. It reads there while another client writes records. Each client has its
// own session, and the serving process has a World for each session. A window with CardAtomics has no Replace, so the
// records are written by other operations there.
func TestServedTableOutdated(t *testing.T) {
	t.Run("plain", func(t *testing.T) { servedTableOutdated(t, 100) })
	// Each word takes several operations, so a round takes long.
	t.Run("CardAtomics", func(t *testing.T) { servedTableOutdated(t, max(20, testsize.N(20)), window.CardAtomics()) })
}

// servedTableOutdated makes the client write each record rounds times.
func servedTableOutdated(t *testing.T, rounds int, options ...window.Option) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	value := []byte("value")
	require.NoError(t, serveTable(t.Context(), l, Config{Slots: 8, RecordBytes: 1 << 15, Clients: 2}, func(s *script, served *Table) {
		visit := func(body func(s *script, table *Table)) error { return visitTable(s.Ctx, l.Addr().String(), body) }
		s.OK(visit(func(s *script, writer *Table) {
			writer.patience = await.Limit
			made := 0
			grow := func(generation uint64) index {
				for ; viewIn(served.local).current.generation() < generation; made++ {
					s.OK(writer.Put(s.Ctx, numbered(0, made), value))
				}
				return writer.indexOf(viewIn(served.local).current)
			}
			was, old := grow(3), viewIn(served.local).current
			// Of two free blocks of a size, one is used for records.
			grow(4)
			writer.freeBlocks(s.Ctx)
			var failed error
			reading, ended := make(chan struct{}), make(chan struct{})
			written, end := context.WithCancel(s.Ctx)
			join := func() error {
				end()
				<-ended
				return failed
			}
			defer func() { _ = join() }()
			go func() {
				defer close(ended)
				failed = visit(func(s *script, reader *Table) {
					batch := reader.NewBatch()
					for look := 0; written.Err() == nil; look++ {
						batch.Reset()
						for i := range made {
							batch.Get(numbered(0, i))
						}
						reader.known[0].store(view{old, old})
						s.OK(batch.Run(s.Ctx))
						for i := range made {
							r := batch.Result(i)
							s.Check(r.Found && bytes.Equal(r.Value, value), "key %d is %+v", i, r)
						}
						if look == 0 {
							close(reading)
						}
					}
				})
			}()
			select {
			case <-reading:
			case <-ended:
				s.OK(failed)
			}
			within, batch := false, writer.NewBatch()
			for range rounds {
				batch.Reset()
				for i := range made {
					batch.Put(numbered(0, i), value)
				}
				s.OK(batch.Run(s.Ctx))
				x := writer.indexOf(viewIn(served.local).current)
				for at := range x.buckets * bucketSlots {
					record := slot(atomic.LoadUint64(&served.local[x.start+at]))
					place := writer.recordStart() + record.place()
					within = within || record.live() && place >= was.cursor() && place < was.cursor()+blockWords(was.buckets)
				}
			}
			s.OK(join())
			s.Check(within, "no record is where the index was")
		}))
	}, options...))
}

func TestServedTableRefused(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, serveTable(t.Context(), l, Config{Slots: 8, RecordBytes: 800, Clients: 1}, func(s *script, table *Table) {
		s.OK(table.Put(s.Ctx, "key", []byte("value")))
		s.OK(visitTable(s.Ctx, l.Addr().String(), func(s *script, table *Table) {
			value, found, err := table.Get(s.Ctx, "key")
			s.OK(err)
			s.Check(found && bytes.Equal(value, []byte("value")), "value is %q, %v", value, found)
			for range table.Local() {
				s.Check(false, "a client owns entries")
			}
			entries, failed := table.All(s.Ctx)
			for k, v := range entries {
				s.Check(k == "key" && string(v.Bytes) == "value", "%q is %q", k, v.Bytes)
			}
			s.OK(failed())
			of, err := table.StatsOf(s.Ctx, 0)
			s.OK(err)
			s.Check(of.Entries == 1 && of.UsedBytes == EntryBytes(3, 5), "StatsOf are %+v", of)
			stats := table.Stats()
			s.Check(stats.Slots == 0 && stats.RecordBytes == 800 && stats.Entries == 0, "Stats are %+v", stats)
			s.Fails(table.Serve(s.Ctx, l, "again"), ErrConfig)
			_, err = Attach(s.Ctx, s.World, "table")
			s.Fails(err, window.ErrNoSeat)
			s.Check(strings.Contains(err.Error(), "seats are taken"), "a table without a seat: %v", err)
			_, err = Attach(s.Ctx, s.World, "nothing")
			s.Fails(err, window.ErrNotServed)
			s.Check(strings.HasPrefix(err.Error(), `hashtable: Attach to table "nothing": `), "another name: %v", err)
		}))
		// These are contents that no table has.
		for _, wrong := range []uint64{0, 2, 1 << 40, 1<<64 - 1} {
			was := table.local[bucketsWord]
			table.local[bucketsWord] = wrong
			s.Fails(visitTable(s.Ctx, l.Addr().String(), func(*script, *Table) {}), ErrCorrupt)
			table.local[bucketsWord] = was
		}
	}))
	alone(t, func(s *script) {
		table := s.table(Config{Slots: 8, RecordBytes: 800})
		s.Fails(table.Serve(s.Ctx, nil, "table"), ErrConfig)
		s.close(table)
		s.Fails(table.Serve(s.Ctx, nil, "table"), ErrClosed)
	})
}

// Rank 0 serves a table, and the job tells the other ranks its address. Rank 1 is a client that dies while it works.
// Rank 2 is a client that continues, as rank 0 does. They use more space than there is, so space must be reused in
// spite of the dead client.
var servedDeath = jobtest.Register("a client of a table dies", func(ctx context.Context, w *world.World) error {
	operations := upTo(2_500, 20_000)
	text := make([]byte, 64)
	var l *world.Listener
	if w.Rank() == 0 {
		var err error
		if l, err = world.Listen(ctx, "127.0.0.1:0", world.WithPeerTimeout(await.Limit), world.WithoutKey()); err != nil {
			return err
		}
		copy(text, l.Addr().String())
	}
	if err := world.Broadcast(ctx, w, 0, text); err != nil {
		return err
	}
	work := func(s *script, table *Table) {
		s.OK(jobtest.Hold("at work"))
		write(s, table, w.Rank(), 8, operations, 100)
		s.OK(jobtest.Hold("done"))
	}
	if w.Rank() == 0 {
		return serveTable(ctx, l, Config{Slots: 256, RecordBytes: 128 << 10, Clients: 2}, func(s *script, table *Table) {
			work(s, table)
		})
	}
	err := visitTable(ctx, string(bytes.TrimRight(text, "\x00")), func(s *script, table *Table) {
		if w.Rank() == 1 {
			jobtest.Signal("at work")
			for i := 0; ; i++ {
				s.OK(table.Put(s.Ctx, fmt.Sprint("dead ", i%8), make([]byte, i%100)))
			}
		}
		work(s, table)
	})
	if err == nil {
		jobtest.Signal("left")
	}
	return err
})

func TestServedTableDeath(t *testing.T) {
	job := jobtest.Start(t, 3, servedDeath)
	for rank := range 3 {
		job.Await(rank, "at work")
	}
	job.Release(2)
	job.Release(0)
	job.Kill(1)
	job.Await(0, "done")
	job.Await(2, "done")
	job.Release(2)
	job.Await(2, "left")
	job.Release(0)
	for rank, err := range job.Wait() {
		if rank == 1 {
			require.ErrorContains(t, err, "killed")
		} else {
			require.NoError(t, err, "rank %d", rank)
		}
	}
}

// A countdown is a context that ends at a look after some others.
type countdown struct {
	context.Context
	end   context.CancelFunc
	looks atomic.Int32
}

func (c *countdown) Err() error {
	if c.looks.Add(-1) < 0 {
		c.end()
	}
	return c.Context.Err()
}

// An Attach that is cut short, wherever it waits, leaves no seat taken.
func TestAttachCutShort(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, serveTable(t.Context(), l, Config{Slots: 8, RecordBytes: 800, Clients: 1}, func(s *script, _ *Table) {
		w, err := world.Dial(s.Ctx, l.Addr().String(), world.WithPeerTimeout(await.Limit), world.WithoutKey())
		s.OK(err)
		for looks := range int32(upTo(40, 200)) {
			ctx, end := context.WithCancel(s.Ctx)
			c := &countdown{Context: ctx, end: end}
			c.looks.Store(looks % 10)
			table, err := Attach(c, w, "table")
			if err != nil {
				s.Fails(err, context.Canceled)
				table, err = Attach(s.Ctx, w, "table")
				s.OK(err)
			}
			end()
			s.OK(table.Close())
		}
		s.OK(w.Close())
	}))
}
