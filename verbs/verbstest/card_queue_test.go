package verbstest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/verbs"
)

type cardQueue struct {
	card     *card
	capacity int
	waiting  []verbs.Completion
	overflow bool
	closed   bool
}

func (c *card) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, verbs.ErrClosed
	}
	if capacity < 1 {
		return nil, fmt.Errorf("card: a queue for %d completions", capacity)
	}
	return &cardQueue{card: c, capacity: capacity}, nil
}

func (q *cardQueue) Poll(into []verbs.Completion) int {
	q.card.mu.Lock()
	defer q.card.mu.Unlock()
	if q.card.broken("polling allocates") {
		q.waiting = slices.Clone(q.waiting)
	}
	n := copy(into, q.waiting)
	if q.card.broken("polling takes the newest first") {
		slices.Reverse(q.waiting)
		copy(into, q.waiting)
	}
	q.waiting = q.waiting[:copy(q.waiting, q.waiting[n:])]
	return n
}

func (q *cardQueue) Close() error {
	q.card.mu.Lock()
	defer q.card.mu.Unlock()
	for _, p := range q.card.pairs {
		if !p.closed && (p.sends == q || p.receives == q) && !q.card.broken("a queue closes under its queue pairs") {
			return errors.New("card: Close of a queue that queue pairs use")
		}
	}
	q.closed = true
	return nil
}

func (q *cardQueue) add(p *cardPair, c verbs.Completion) {
	c.QueuePair = p.number
	if p.closed {
		return
	}
	if len(q.waiting) >= q.capacity {
		if !q.overflow && !p.card.broken("a queue overflows in silence") {
			q.overflow = true
			for _, other := range p.card.pairs {
				if other.config.SendQueue == q || other.config.ReceiveQueue == q {
					other.fail(errors.New("card: completion queue overflow"))
				}
			}
		}
		return
	}
	q.waiting = append(q.waiting, c)
	if p.card.broken("every fifth completion comes twice") && c.ID%5 == 0 && len(q.waiting) < q.capacity {
		q.waiting = append(q.waiting, c)
	}
	p.card.bell.ring()
}
