package job

import (
	"context"
	"math/bits"

	"github.com/onesided/rma/internal/tuning"
)

// A fold makes the ranks a power of two: of the first ranks each even one hands what it has to
// the one behind it, and gets the result from that. Those that are left are counted anew.
//
// The sums of a pair are worked out by both of it, of the same operands in the same order, or by
// one, which tells the other: so all ranks have the same result, also where combine rounds.
type fold struct {
	rank, power, pairs int
	// me is this rank's number among those that are left.
	me int
}

func (w *World) fold() fold {
	f := fold{rank: w.rank, power: 1 << (bits.Len(uint(w.size)) - 1)}
	f.pairs = w.size - f.power
	f.me = f.number(w.rank)
	return f
}

func (f *fold) levels() uint64 { return uint64(bits.Len(uint(f.power - 1))) }

// number is that of a rank, or of the one that it hands to; rankOf is its inverse.
func (f *fold) number(rank int) int {
	if rank < 2*f.pairs {
		return rank / 2
	}
	return rank - f.pairs
}

func (f *fold) rankOf(number int) int {
	if number < f.pairs {
		return 2*number + 1
	}
	return number + f.pairs
}

// hands tells whether a rank hands what it has to the next.
func (f *fold) hands(rank int) bool { return rank < 2*f.pairs && rank%2 == 0 }

// A sum is what a rank has added up of the elements of a call, and place for what comes of one
// exchange.
type sum[T any] struct {
	*round
	fold
	total, other []T
	by           operation[T]
	// in are this rank's own elements while total has nothing yet, nil afterwards. What comes is added to
	// them on its way to total then, without a stay in other, which is nothing.
	in []T
	// direct tells that what comes later is added on its way, too.
	direct bool
}

// newSum begins with a rank's own elements. The total comes to be in out, if that is as long.
// An Op adds what comes to parts of the total which are not sent meanwhile, as those are that are halved, at once.
func newSum[T any](r *round, in, out []T, by operation[T], way tuning.Algorithm) sum[T] {
	s := sum[T]{round: r, fold: r.w.fold(), total: out, by: by, direct: by.kernel != nil && way == tuning.Long && r.w.size > 1}
	most := len(in)
	switch {
	case s.direct:
		most = 0
	case way == tuning.Long && s.pairs == 0:
		most = (most + 1) / 2
	}
	if len(out) == len(in) {
		s.other = scratch[T](r, most)
	} else {
		memory := scratch[T](r, most+len(in))
		s.other, s.total = memory[:most], memory[most:]
	}
	switch {
	case len(in) == 0 || &in[0] == &s.total[0]:
	case s.direct:
		s.in = in
	case !r.away():
		relocate(r, s.total, in)
	}
	return s
}

// swap sends the elements of one part to a rank and adds what it sends to those of another.
// Both may be nothing.
func (s *sum[T]) swap(ctx context.Context, rank int, out, in part) error {
	return s.move(ctx, rank, s.mine()[out.from:out.to], rank, in)
}

// mine is where what has been added up is: in total, once something has.
func (s *sum[T]) mine() []T {
	if s.in != nil {
		return s.in
	}
	return s.total
}

// move sends elements to a rank, and adds what one sends to those of a part, the operand of the lower rank
// first. Where they are added on their way the order does not count: the sum of each is worked out by one rank.
func (s *sum[T]) move(ctx context.Context, to int, out []T, from int, in part) error {
	total := s.total[in.from:in.to]
	if s.direct {
		add := addition{kernel: s.by.kernel, size: s.size(), lower: s.rank < from}
		if s.in != nil {
			add.mine = bytesOf(s.in[in.from:in.to])
		}
		_, err := s.exchangeAdding(ctx, to, bytesOf(out), from, bytesOf(total), &add)
		s.in = nil
		return err
	}
	other := s.other[:len(total)]
	now, err := s.exchange(ctx, to, bytesOf(out), from, bytesOf(other))
	if now && err == nil {
		s.by.add(total, other, s.rank < from)
	}
	return err
}

// size of an element, in bytes.
func (s *sum[T]) size() int { return int(s.signature.element) }

// handOver has each pair's sum at its second rank.
func (s *sum[T]) handOver(ctx context.Context) error {
	switch {
	case s.hands(s.rank):
		return s.send(ctx, s.rank+1, bytesOf(s.mine()))
	case s.rank >= 2*s.pairs:
		return nil
	}
	return s.move(ctx, nobody, nil, s.rank-1, part{0, len(s.total)})
}

// handBack has the total at the first of each pair too, or only at root.
func (s *sum[T]) handBack(ctx context.Context, root int) error {
	switch {
	case s.hands(s.rank) && (root == nobody || root == s.rank):
		return s.receive(ctx, s.rank+1, bytesOf(s.total))
	case s.rank < 2*s.pairs && s.rank%2 == 1 && (root == nobody || root == s.rank-1):
		return s.send(ctx, s.rank-1, bytesOf(s.total))
	}
	return nil
}

// double has the total of all at each rank that is left: the number of ranks whose elements are
// in it doubles with each exchange.
func (s *sum[T]) double(ctx context.Context) error {
	all := part{0, len(s.total)}
	for distance := 1; distance < s.power; distance *= 2 {
		if err := s.swap(ctx, s.rankOf(s.me^distance), all, all); err != nil {
			return err
		}
	}
	return nil
}

// A part is elements of a vector, those from one to another.
type part struct{ from, to int }

// halve has part of the total at each rank that is left: what it adds up halves with each
// exchange. parts are what it has had, from all on.
func (s *sum[T]) halve(ctx context.Context) (parts []part, err error) {
	mine := part{0, len(s.total)}
	parts = append(s.parts[:0], mine)
	for distance := s.power / 2; distance > 0; distance /= 2 {
		middle := mine.from + (mine.to-mine.from)/2
		low, high := part{mine.from, middle}, part{middle, mine.to}
		if s.me&distance != 0 {
			low, high = high, low
		}
		if err := s.swap(ctx, s.rankOf(s.me^distance), high, low); err != nil {
			return nil, err
		}
		mine = low
		parts = append(parts, mine)
	}
	s.parts = parts
	return parts, nil
}

// rest is what a whole has beside a half of it.
func (p part) rest(whole part) part {
	if p.from == whole.from {
		return part{p.to, whole.to}
	}
	return part{whole.from, p.from}
}

// collect has the total at each rank that is left, after halve, or only at root's number.
func (s *sum[T]) collect(ctx context.Context, parts []part, root int) error {
	for distance := 1; distance < s.power; distance *= 2 {
		mine, whole := parts[len(parts)-1], parts[len(parts)-2]
		parts = parts[:len(parts)-1]
		theirs, to := mine.rest(whole), s.rankOf(s.me^distance)
		out, in := bytesOf(s.total[mine.from:mine.to]), bytesOf(s.total[theirs.from:theirs.to])
		var err error
		switch {
		case root == nobody:
			_, err = s.exchange(ctx, to, out, to, in)
		case (s.me^root)&distance != 0:
			return s.send(ctx, to, out)
		default:
			err = s.receive(ctx, to, in)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allReduce gives the total of all to every rank, the short way or the long one.
func allReduce[T any](ctx context.Context, r *round, in, out []T, by operation[T], way tuning.Algorithm) error {
	s := newSum(r, in, out, by, way)
	if err := s.handOver(ctx); err != nil {
		return err
	}
	if !s.hands(s.rank) {
		if err := s.spread(ctx, way); err != nil {
			return err
		}
	}
	return s.handBack(ctx, nobody)
}

// spread has the total at each rank that is left.
func (s *sum[T]) spread(ctx context.Context, way tuning.Algorithm) error {
	if way == tuning.Short {
		return s.double(ctx)
	}
	parts, err := s.halve(ctx)
	if err != nil {
		return err
	}
	return s.collect(ctx, parts, nobody)
}

// reduceLong gives, at root, the total of all.
func reduceLong[T any](ctx context.Context, r *round, root int, in []T, by operation[T]) ([]T, error) {
	s := newSum(r, in, nil, by, tuning.Long)
	if err := s.handOver(ctx); err != nil {
		return nil, err
	}
	if !s.hands(s.rank) {
		parts, err := s.halve(ctx)
		if err == nil {
			err = s.collect(ctx, parts, s.number(root))
		}
		if err != nil {
			return nil, err
		}
	}
	return s.total, s.handBack(ctx, root)
}
