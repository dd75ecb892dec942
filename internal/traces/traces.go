package traces

import (
	"iter"
	"math/rand/v2"
)

// A Trace is a sequence of buffer uses.
type Trace struct {
	Name string
	// Mixed reports that different buffers, or times, need different treatment.
	Mixed bool
	// Sizes are the sizes of the buffers, in bytes.
	Sizes []int
	// Order has the index of the buffer of each use.
	Order []int32
}

// A Use is a use of a buffer. Buffers are numbered from 0.
type Use struct{ Buffer, Bytes int }

// Uses returns an iterator over the uses in their order.
func (t *Trace) Uses() iter.Seq[Use] {
	return func(yield func(Use) bool) {
		for _, b := range t.Order {
			if !yield(Use{int(b), t.Sizes[b]}) {
				return
			}
		}
	}
}

// Bytes returns the total size of all buffers.
func (t *Trace) Bytes() (sum int) {
	for _, size := range t.Sizes {
		sum += size
	}
	return sum
}

// All returns the traces of a seed.
func All(seed uint64) []Trace {
	r := rand.New(rand.NewPCG(seed, 0))
	tiny := func(t *Trace) { t.use(t.buffers(1, 8), 10_000) }
	one := func(t *Trace) { t.use(t.buffers(1, 8<<10), 10_000) }
	few := func(t *Trace) { t.rounds(t.buffers(8, 1600), 8000) }
	many := func(t *Trace) {
		for b := range t.buffers(200, 4<<10) {
			t.use(only(b), 45+r.IntN(256))
		}
		t.shuffle(r)
	}
	spectrum := func(t *Trace) {
		i := 0
		for b := range t.buffers(1000, 8<<10) {
			i++
			t.use(only(b), i)
		}
		t.shuffle(r)
	}
	sort := func(t *Trace) { t.use(t.buffers(100_000, 2<<10), 1) }
	// fleeting buffers are used three times in a row.
	fleeting := func(t *Trace) { t.use(t.buffers(5000, 16<<10), 3) }
	often := func(t *Trace) { t.rounds(t.buffers(300, 8<<10), 100) }
	seldom := func(t *Trace) { t.use(t.buffers(3000, 8<<10), 8) }
	once := func(t *Trace) { t.use(t.buffers(10_000, 8<<10), 1) }

	return []Trace{
		of("tiny", tiny),
		of("one", one),
		of("few", few),
		of("many", many),
		of("spectrum", spectrum),
		of("sort", sort),
		of("fleeting", fleeting),
		mixed("mix", func(t *Trace) {
			t.interleave(r, of("", few), of("", many), of("", spectrum), of("", sort), of("", fleeting))
		}),
		of("periods", func(t *Trace) {
			for range 3 {
				often(t)
				once(t)
			}
		}),
		mixed("phases", func(t *Trace) {
			for range 3 {
				often(t)
				seldom(t)
			}
		}),
	}
}

func of(name string, uses func(*Trace)) Trace {
	t := Trace{Name: name}
	uses(&t)
	return t
}

func mixed(name string, uses func(*Trace)) Trace {
	t := of(name, uses)
	t.Mixed = true
	return t
}

// buffers adds n buffers of a size.
func (t *Trace) buffers(n, size int) iter.Seq[int32] {
	first := len(t.Sizes)
	for range n {
		t.Sizes = append(t.Sizes, size)
	}
	return func(yield func(int32) bool) {
		for i := range n {
			if !yield(int32(first + i)) {
				return
			}
		}
	}
}

func only(b int32) iter.Seq[int32] { return func(yield func(int32) bool) { yield(b) } }

// use adds times uses of each buffer, in a row.
func (t *Trace) use(buffers iter.Seq[int32], times int) {
	for b := range buffers {
		for range times {
			t.Order = append(t.Order, b)
		}
	}
}

// rounds adds times rounds, each a use of every buffer.
func (t *Trace) rounds(buffers iter.Seq[int32], times int) {
	for range times {
		t.use(buffers, 1)
	}
}

func (t *Trace) shuffle(r *rand.Rand) {
	r.Shuffle(len(t.Order), func(i, k int) { t.Order[i], t.Order[k] = t.Order[k], t.Order[i] })
}

// interleave adds the uses of other traces, interleaved at random, each in its order.
func (t *Trace) interleave(r *rand.Rand, others ...Trace) {
	var whose []int
	for i := range others {
		first := len(t.Sizes)
		t.Sizes = append(t.Sizes, others[i].Sizes...)
		for k := range others[i].Order {
			others[i].Order[k] += int32(first)
			whose = append(whose, i)
		}
	}
	r.Shuffle(len(whose), func(i, k int) { whose[i], whose[k] = whose[k], whose[i] })
	for _, i := range whose {
		t.Order = append(t.Order, others[i].Order[0])
		others[i].Order = others[i].Order[1:]
	}
}
