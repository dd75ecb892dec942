package oracle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/world"
)

// The log of a rank has, for each phase, what its steps have read, in their order. After each phase that is not loose
// it has the changes of its part of each window.

// appendChanges appends changes as runs of bytes. Each run has the number of unchanged bytes before it and its
// length. An empty run ends them.
func appendChanges(log, was, is []byte) []byte {
	const block = 64
	at := 0
	for i := 0; i < len(is); {
		if end := min(i+block, len(is)); bytes.Equal(was[i:end], is[i:end]) {
			i = end
			continue
		}
		for was[i] == is[i] {
			i++
		}
		end := i + 1
		for end < len(is) && was[end] != is[end] {
			end++
		}
		log = binary.AppendUvarint(log, uint64(i-at))
		log = binary.AppendUvarint(log, uint64(end-i))
		log = append(log, is[i:end]...)
		at, i = end, end
	}
	return append(log, 0, 0)
}

var errLog = errors.New("oracle: the log of a rank is not that of the program")

// A logReader reads the log of a rank.
type logReader struct{ rest []byte }

func (l *logReader) take(n uint64) ([]byte, error) {
	if n > uint64(len(l.rest)) {
		return nil, errLog
	}
	b := l.rest[:n:n]
	l.rest = l.rest[n:]
	return b, nil
}

func (l *logReader) number() (uint64, error) {
	v, n := binary.Uvarint(l.rest)
	if n <= 0 {
		return 0, errLog
	}
	l.rest = l.rest[n:]
	return v, nil
}

// changes applies changes to part.
func (l *logReader) changes(part []byte) error {
	at := uint64(0)
	for {
		same, err := l.number()
		if err != nil {
			return err
		}
		length, err := l.number()
		if err != nil {
			return err
		}
		b, err := l.take(length)
		switch {
		case err != nil:
			return err
		case length == 0:
			return nil
		case same > uint64(len(part))-at || length > uint64(len(part))-at-same:
			return errLog
		}
		copy(part[at+same:], b)
		at += same + length
	}
}

// decode makes the record of a run from the logs of all ranks.
func (p *Program) decode(logs [][]byte) (*record, error) {
	r := &record{results: make([][][]byte, len(p.Phases))}
	readers := make([]logReader, p.Ranks)
	for rank, log := range logs {
		readers[rank].rest = log
	}
	now := make([][]byte, len(p.Windows)*p.Ranks)
	for i := range now {
		w := &p.Windows[i/p.Ranks]
		now[i] = make([]byte, w.Counts[i%p.Ranks]*w.Kind.Size())
	}
	for i := range p.Phases {
		f := &p.Phases[i]
		r.results[i] = make([][]byte, len(f.Steps))
		for j := range f.Steps {
			s := &f.Steps[j]
			if !s.reads() {
				continue
			}
			b, err := readers[s.Rank].take(uint64(s.elements() * s.Kind.Size()))
			if err != nil {
				return nil, fmt.Errorf("%w: rank %d, %v", err, s.Rank, s)
			}
			r.results[i][j] = b
		}
		if f.Loose {
			continue
		}
		for j := range now {
			now[j] = slices.Clone(now[j])
			if err := readers[j%p.Ranks].changes(now[j]); err != nil {
				return nil, fmt.Errorf("%w: rank %d, phase %d", err, j%p.Ranks, i)
			}
		}
		r.parts = append(r.parts, slices.Clone(now))
	}
	return r, nil
}

// gather returns the logs of all ranks on rank 0.
func gather(ctx context.Context, w *world.World, log []byte) ([][]byte, error) {
	longest := make([]int64, 1)
	if err := world.AllReduce(ctx, w, []int64{int64(len(log))}, longest, func(a, b int64) int64 { return max(a, b) }); err != nil {
		return nil, err
	}
	size := int(longest[0])
	if size == 0 {
		return make([][]byte, w.Size()), nil
	}
	var all []byte
	if w.Rank() == 0 {
		all = make([]byte, size*w.Size())
	}
	if err := world.Gather(ctx, w, 0, append(log, make([]byte, size-len(log))...), all); err != nil || w.Rank() != 0 {
		return nil, err
	}
	return slices.Collect(slices.Chunk(all, size)), nil
}
