package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/errtext"
)

// A roster is who of the job has failed. The ranks of Run that share memory share one.
type roster struct {
	failures atomic.Uint32
	failed   []atomic.Pointer[PeerError]

	// job is that of the job, of which a team has the ranks inJob; nil in that itself, which
	// has those of teams.
	job   *roster
	inJob []int
	teams []*roster

	// reason gives a better cause than that a rank is gone, nil where there is none.
	reason func(rank int, found error) error

	mu sync.Mutex
	// order are the failures, in the order in which they were recorded.
	order []*PeerError
	// own is 1 + the rank whose roster this is, once its body fails, and 0 before. After its own failure the rank tells neither
	// other ranks nor the launcher of any: see failLast.
	own int
	// blamer is nil where there is no launcher.
	blamer *blamer
	// Listeners are called with each failure by the goroutine that noticed it, in the midst of
	// what it does: sever before anybody can know of it, relay and then heard after that. Relay tells other ranks.
	sever, relay, heard listeners
}

// listeners are functions, in the order in which they came.
type listeners []*func(rank int)

// A team's rank has failed when it has in the job, and fails there first. The job's roster
// is locked before a team's.
func newRoster(size int) *roster {
	return &roster{failed: make([]atomic.Pointer[PeerError], size)}
}

// A laterError is the cause of a failure after the first: a rank may have ended because
// of that.
type laterError struct {
	cause error
	first *PeerError
}

func (e *laterError) Error() string {
	var of *PeerError
	if errors.As(e.cause, &of) && of.Rank == e.first.Rank {
		// It says of itself that it has failed for the first.
		return e.cause.Error()
	}
	return errtext.After(fmt.Sprintf("%v, after rank %d had failed: ", e.cause, e.first.Rank), e.first.Cause)
}

func (e *laterError) Unwrap() error { return e.cause }

// fail records that rank has failed. Only the first cause counts; who comes with
// another while rank is severed waits, so that all find the failure recorded.
func (r *roster) fail(rank int, cause error) {
	if r.job != nil {
		r.job.fail(r.inJob[rank], cause)
		return
	}
	r.mu.Lock()
	if r.failed[rank].Load() != nil {
		r.mu.Unlock()
		return
	}
	relays := r.own == 0 || r.failed[r.own-1].Load() == nil
	if r.reason != nil {
		cause = r.reason(rank, cause)
	}
	// The launcher knows before this rank can fail of it.
	if relays {
		r.blamer.accuse(rank, blamesFailed)
	}
	for _, f := range r.sever {
		(*f)(rank)
	}
	teams := slices.Clone(r.teams)
	for _, t := range teams {
		t.failInJob(rank, cause)
	}
	r.record(rank, cause)
	called := r.callees(relays)
	r.mu.Unlock()
	for _, f := range called {
		(*f)(rank)
	}
	for _, t := range teams {
		t.announce(rank, relays)
	}
}

// left takes note of a rank that has left while this one needed it.
func (r *roster) left(rank int) {
	if r.job != nil {
		r.job.left(r.inJob[rank])
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blamer.accuse(rank, blamesLeaver)
}

// record notes a failure. It is called with the mutex.
func (r *roster) record(rank int, cause error) {
	if len(r.order) > 0 {
		cause = &laterError{cause, r.order[0]}
	}
	e := &PeerError{Rank: rank, Cause: cause}
	r.failed[rank].Store(e)
	r.order = append(r.order, e)
	r.failures.Add(1)
}

// newTeamRoster is that of a team that has some ranks of a job.
func newTeamRoster(job *roster, inJob []int) *roster {
	r := newRoster(len(inJob))
	r.job, r.inJob = job, inJob
	return r
}

// join has a team's roster told of failures from now on, and of those that have been.
func (r *roster) join() {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	r.job.teams = append(r.job.teams, r)
	for _, inJob := range r.inJob {
		if e := r.job.failed[inJob].Load(); e != nil {
			r.failInJob(inJob, e.Cause)
		}
	}
}

// quit has it told no more.
func (r *roster) quit() {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	r.job.teams = slices.DeleteFunc(r.job.teams, func(other *roster) bool { return other == r })
}

// A memberError is why a rank of a team has failed.
type memberError struct {
	inJob int
	cause error
}

func (e *memberError) Error() string {
	text, which := fmt.Sprint(e.cause), fmt.Sprintf(" (it is rank %d of the job)", e.inJob)
	// Another rank of the team, that has told of it, may have said so.
	return strings.TrimSuffix(text, which) + which
}
func (e *memberError) Unwrap() error { return e.cause }

// failInJob records in a team that a rank of the job fails, if it has that.
func (r *roster) failInJob(inJob int, cause error) {
	rank := slices.Index(r.inJob, inJob)
	if rank < 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.sever {
		(*f)(rank)
	}
	r.record(rank, &memberError{inJob, cause})
}

// announce calls the listeners of a team with a rank of the job that has failed.
func (r *roster) announce(inJob int, relays bool) {
	rank := slices.Index(r.inJob, inJob)
	if rank < 0 {
		return
	}
	r.mu.Lock()
	called := r.callees(relays)
	r.mu.Unlock()
	for _, f := range called {
		(*f)(rank)
	}
}

// callees returns the listeners that are called after a failure is recorded. It is called with the mutex.
func (r *roster) callees(relays bool) listeners {
	if !relays {
		return slices.Clone(r.heard)
	}
	return slices.Concat(r.relay, r.heard)
}

// listen has f called with the rank of each failure that is recorded from now on, until stop is called. told is set to the number of
// failures so far, for next.
func (r *roster) listen(told *int, f func(rank int)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*told = len(r.order)
	r.heard = append(r.heard, &f)
	return func() { r.remove(&r.heard, &f) }
}

// next returns the first failure after those that told counts, and counts it; nil if there is none.
func (r *roster) next(told *int) *PeerError {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *told == len(r.order) {
		return nil
	}
	*told++
	return r.order[*told-1]
}

// relayTo has f called with the rank of each failure, to tell other ranks of it, until the function that it returns is called.
func (r *roster) relayTo(f func(rank int)) (stop func()) { return r.add(&r.relay, f) }

// beforehand has f called with the rank of each failure before it is recorded, until
// the function that it returns is called. f must neither wait nor ask who has failed.
func (r *roster) beforehand(f func(rank int)) (stop func()) { return r.add(&r.sever, f) }

func (r *roster) add(to *listeners, f func(rank int)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*to = append(*to, &f)
	return func() { r.remove(to, &f) }
}

func (r *roster) remove(from *listeners, f *func(rank int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*from = slices.DeleteFunc(*from, func(other *func(int)) bool { return other == f })
}

// Failure is nil, or the *PeerError of a rank that has failed, which counts among Failures then.
func (w *World) Failure(rank int) error {
	if e := w.roster.failure(rank); e != nil {
		return e
	}
	return nil
}

// failure is that of a rank, nil until failures count it.
func (r *roster) failure(rank int) *PeerError {
	if r.failures.Load() == 0 {
		return nil
	}
	return r.failed[rank].Load()
}

// FailureCount returns how many ranks have failed: one load.
func (w *World) FailureCount() uint32 { return w.roster.failures.Load() }

// Failures returns the failures so far, in the order in which this rank learned of them.
func (w *World) Failures() []*PeerError {
	if w.roster.failures.Load() == 0 {
		return nil
	}
	w.roster.mu.Lock()
	defer w.roster.mu.Unlock()
	return slices.Clone(w.roster.order)
}

// FirstFailure is the rank that failed first and its *PeerError; -1 and nil if none
// has.
func (w *World) FirstFailure() (rank int, err error) {
	w.roster.mu.Lock()
	defer w.roster.mu.Unlock()
	if len(w.roster.order) == 0 {
		return -1, nil
	}
	return w.roster.order[0].Rank, w.roster.order[0]
}

// peerError is the error of a call that needs rank, nil while it lives.
func (w *World) peerError(op string, rank int) error {
	if e := w.roster.failure(rank); e != nil {
		w.passOnFirst()
		return &PeerError{Rank: rank, Op: op, Cause: e.Cause}
	}
	return nil
}

// anyFailure is the error of a call that needs every rank, nil while all live.
func (w *World) anyFailure(op string) error {
	if w.FailureCount() == 0 {
		return nil
	}
	w.passOnFirst()
	_, err := w.FirstFailure()
	first := err.(*PeerError)
	return &PeerError{Rank: first.Rank, Op: op, Cause: first.Cause}
}

// Gone reports whether a rank has failed, or is known to have left the job. Who has left serves the others until they have, too.
func (w *World) Gone(rank int) bool {
	if w.roster.failure(rank) != nil || w.parted[rank].Load() {
		return true
	}
	if rank == w.rank {
		return w.left.Load()
	}
	if !w.Mapped(rank) {
		return false
	}
	_, left := w.barrier.left(rank)
	return left
}
