package sim

import "time"

// A deadline is when the wait of a task ends. task is the task's number. Deadlines at one time are in an order that the
// seed determines.
type deadline struct {
	at   time.Duration
	tie  uint32
	task uint32
}

func (a *deadline) before(b *deadline) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.tie != b.tie {
		return a.tie < b.tie
	}
	return a.task < b.task
}

// deadlines are the deadlines of the waiting tasks, in a heap of four children per node. A task that is woken earlier
// is removed, so that long limits leave nothing behind. The tasks themselves are not accessed: there are thousands,
// which the cache does not hold.
type deadlines struct {
	seed uint64
	heap []deadline
	// places are the positions of the tasks in the heap, by number, -1 if absent.
	places []int32
}

// next returns the first deadline, if there is one.
func (d *deadlines) next() (at time.Duration, some bool) {
	if len(d.heap) == 0 {
		return 0, false
	}
	return d.heap[0].at, true
}

func (d *deadlines) add(t *task) {
	for len(d.places) <= t.number {
		d.places = append(d.places, -1)
	}
	d.heap = append(d.heap, deadline{})
	d.up(len(d.heap)-1, deadline{at: t.deadline, tie: tie(d.seed, t.deadline, t.lane), task: uint32(t.number)})
}

func (d *deadlines) remove(t *task) {
	if t.number >= len(d.places) || d.places[t.number] < 0 {
		return
	}
	i := int(d.places[t.number])
	d.places[t.number] = -1
	last := len(d.heap) - 1
	moved := d.heap[last]
	d.heap = d.heap[:last]
	switch {
	case i == last:
	case i > 0 && moved.before(&d.heap[(i-1)/4]):
		d.up(i, moved)
	default:
		d.down(i, moved)
	}
}

func (d *deadlines) up(i int, e deadline) {
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&d.heap[parent]) {
			break
		}
		d.put(i, d.heap[parent])
		i = parent
	}
	d.put(i, e)
}

func (d *deadlines) down(i int, e deadline) {
	for {
		least := 4*i + 1
		if least >= len(d.heap) {
			break
		}
		for child := least + 1; child < min(4*i+5, len(d.heap)); child++ {
			if d.heap[child].before(&d.heap[least]) {
				least = child
			}
		}
		if !d.heap[least].before(&e) {
			break
		}
		d.put(i, d.heap[least])
		i = least
	}
	d.put(i, e)
}

func (d *deadlines) put(i int, e deadline) {
	d.heap[i] = e
	d.places[e.task] = int32(i)
}
