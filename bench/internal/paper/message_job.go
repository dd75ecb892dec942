package paper

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/onesided/rma/verbs/channel"
)

// A messageJob is a set of ranks that send each other messages along a binomial tree.
type messageJob struct {
	mode  mode
	ranks []*messageRank
	// arrived is the number of ranks in the barrier, barriers the number of completed barriers. latest is when the last
	// rank came to this one; begins is that of the previous one.
	arrived, barriers int
	latest, begins    time.Duration
	// failed is the error with which a rank has ended.
	failed error
}

// withMessages runs body on ranks ranks, each with memory for its buffers, and returns when all have ended.
func (f *Figure) withMessages(o *Options, m mode, ranks, memory int, body func(r *messageRank) error) error {
	s, err := f.simulator(o)
	if err != nil {
		return err
	}
	j := &messageJob{mode: m}
	for rank := range ranks {
		j.ranks = append(j.ranks, &messageRank{
			job: j, rank: rank, device: s.Open(), memory: make([]byte, memory),
			ends: make(map[int]*channel.End), came: make(map[*channel.End][]channel.Arrival), fromNode: make(map[int]*sharedMessage),
		})
	}
	errs := make([]error, ranks)
	for i, r := range j.ranks {
		r.device.Go(fmt.Sprint("rank ", i), func() {
			if errs[i] = r.open(); errs[i] == nil {
				errs[i] = body(r)
			}
			if errs[i] != nil && j.failed == nil {
				j.failed = fmt.Errorf("bench: rank %d has failed", i)
			}
		})
	}
	return errors.Join(s.Run(), errors.Join(errs...))
}

// parent returns the rank from which this one receives along the tree, or -1 for rank 0, the root.
func (r *messageRank) parent() int {
	if r.rank == 0 {
		return -1
	}
	return r.rank & (r.rank - 1)
}

// children yields the ranks to which this one sends along the tree, the farthest first. ranks is the size of a
// child's subtree: itself and the ranks after it.
func (r *messageRank) children(yield func(child, ranks int) bool) {
	size := len(r.job.ranks)
	distance := r.rank & -r.rank
	if r.rank == 0 {
		distance = 1 << bits.Len(uint(size-1))
	}
	for distance /= 2; distance > 0; distance /= 2 {
		if child := r.rank + distance; child < size && !yield(child, min(distance, size-child)) {
			return
		}
	}
}

// neighbors reports whether a rank is on the same node. Ranks of a node have consecutive numbers.
func (r *messageRank) neighbors(other int) bool {
	perNode := max(len(r.job.ranks)/messageNodes, 1)
	return r.rank/perNode == other/perNode
}

// A sharedMessage is memory that ranks of a node share, which holds a message from a time on.
type sharedMessage struct {
	message []byte
	from    time.Duration
	full    bool
}

// store copies a message to where a rank of the node reads it.
func (r *messageRank) store(to int, payload []byte) {
	other := r.job.ranks[to]
	s := other.sharedMessage(r.rank)
	s.message = append(s.message[:0], payload...)
	r.device.Copied(len(payload))
	s.full, s.from = true, r.device.Now()
	other.device.Channel().Wake()
}

func (r *messageRank) sharedMessage(of int) *sharedMessage {
	s := r.fromNode[of]
	if s == nil {
		s = new(sharedMessage)
		r.fromNode[of] = s
	}
	return s
}

// load copies a message that a rank of the node has stored.
func (r *messageRank) load(from int, into []byte) error {
	s := r.sharedMessage(from)
	for !s.full {
		if err := r.sleep(); err != nil {
			return err
		}
	}
	r.waitUntil(s.from)
	r.device.PollRings(1)
	r.device.Copy(into, s.message)
	s.full = false
	return nil
}

// waitUntil advances time to t, if t has not passed.
func (r *messageRank) waitUntil(t time.Duration) {
	if now := r.device.Now(); now < t {
		r.device.Compute(t - now)
	}
}

// barrier returns when all ranks have called it, at the time of the last. It takes no time itself.
func (r *messageRank) barrier() error {
	j := r.job
	completed := j.barriers
	j.latest = max(j.latest, r.device.Now())
	if j.arrived++; j.arrived == len(j.ranks) {
		j.arrived, j.begins = 0, j.latest
		j.barriers++
		for _, other := range j.ranks {
			other.device.Channel().Wake()
		}
	}
	for j.barriers == completed {
		if err := r.sleep(); err != nil {
			return err
		}
	}
	r.waitUntil(j.begins)
	return nil
}
