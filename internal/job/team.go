package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A team is a World of some of the ranks of another. It has the endpoint of that: devices,
// progress, the memory that cards know and the notice of failures are the rank's, in whatever
// teams it is. Of its own a team has a block of flags, pipes and links, each made when it
// is first used; so numbers of services and meetings mean nothing outside of it.
//
// # Invariants
//
//   - Two ranks have no two teams with one context: each tells in Split the highest that it has
//     had, and all take the next one.
//   - Nobody connects to a rank for a team that it has not made yet: Split returns when all
//     ranks have made theirs.
//   - Who has left a team has a block that others may only read, and when all have, none: that
//     its context is another tells them so.
//   - Who is in a team that Split has not given it leaves that without coming to its last meeting,
//     to which it does not know the way, and says so: others that have it do not wait for that.
//   - What fails fails in the job, and so in all teams, before anybody can know of it; who has
//     left, or connects in vain because the team is closed, is gone for that team only.

// splitting is what Split has done when its context has cut it short.
type splitting struct {
	// begun tells that it was called with color and key; made that there is the team, nil for
	// a rank that is in none, or else there is flaw.
	begun, made bool
	color, key  int
	team        *World
	// members are the ranks of the World that is split that the team has.
	members []int
	flaw    error
}

// A bid is what a rank tells for a split.
type bid struct {
	color, key int64
	context    uint32
}

// A stand is where others find a rank's block of a team; flawed is 1 if it could not be made.
type stand struct {
	block  Places
	flawed uint8
}

// Split makes a team of the ranks that pass the same color, ordered by key.
func (w *World) Split(ctx context.Context, color, key int) (*World, error) {
	if err := w.take(ctx, "Split"); err != nil {
		return nil, err
	}
	defer w.collective.Unlock()
	defer w.EndSpan("Split", w.BeginSpan())
	team, err := w.split(ctx, color, key)
	if err != nil && w.lost("Split", w.calls.Load()+1) != nil {
		// Called again it ends no better.
		_, failed := w.abandonSplit(ctx)
		err = errors.Join(err, failed)
	}
	return team, err
}

func (w *World) split(ctx context.Context, color, key int) (*World, error) {
	r, s := &w.round, &w.splitting
	if err := w.verdict("Split", w.calls.Load()+1); err != nil {
		return nil, err
	}
	if s.begun && (s.color != color || s.key != key) {
		return nil, r.refuse("Split")
	}
	if !s.made {
		if err := start[bid](w, "Split", callSplit, 0, 1); err != nil {
			return nil, err
		}
		*s = splitting{begun: true, color: color, key: key}
		bids := make([]bid, w.size)
		if err := r.end(allGather(ctx, r, []bid{{int64(color), int64(key), w.highestContext()}}, bids)); err != nil {
			return nil, err
		}
		s.team, s.members, s.flaw = w.joinTeam(bids)
		s.made = true
	}
	if err := start[stand](w, "Split", callJoin, 0, 1); err != nil {
		return nil, err
	}
	stands := make([]stand, w.size)
	if err := r.end(allGather(ctx, r, []stand{s.stand()}, stands)); err != nil {
		return nil, err
	}
	if s.flaw != nil {
		err := errtext.Errorf("world: Split: %w", s.flaw)
		*s = splitting{}
		return nil, err
	}
	for _, member := range s.members {
		if stands[member].flawed != 0 {
			err := fmt.Errorf("world: Split: %w: rank %d could not make its part of the team", ErrMismatch, member)
			_, failed := w.abandonSplit(ctx)
			return nil, errors.Join(err, failed)
		}
	}
	team := s.team
	if team != nil {
		for rank, member := range s.members {
			team.job.contacts[rank].block = stands[member].block
		}
		team.partial.Store(false)
	}
	*s = splitting{}
	return team, nil
}

// abandonSplit closes the teams of Splits that did not end well on this rank. On others they may have. cut is the error of ctx if
// that has kept a team from being closed: the next abandonSplit goes on with it, or the Close of the World.
func (w *World) abandonSplit(ctx context.Context) (cut, err error) {
	if team := w.splitting.team; team != nil {
		w.abandoned = append(w.abandoned, team)
	}
	w.splitting = splitting{}
	for ; len(w.abandoned) > 0; w.abandoned = w.abandoned[1:] {
		failed := w.abandoned[0].CloseOwn(ctx)
		if cutBy(ctx, failed) {
			return failed, err
		}
		err = errors.Join(err, failed)
	}
	return nil, err
}

// highestContext is that of all that this rank has had.
func (e *endpoint) highestContext() uint32 {
	e.engine.Lock()
	defer e.engine.Unlock()
	return e.lastContext
}

func (s *splitting) stand() stand {
	switch {
	case s.flaw != nil:
		return stand{flawed: 1}
	case s.team == nil:
		return stand{}
	}
	return stand{block: s.team.region.Remote()}
}

// joinTeam makes this rank's part of the team that it is in by what all have bid, and tells
// which ranks of this World that has.
func (w *World) joinTeam(bids []bid) (team *World, members []int, err error) {
	context := uint32(0)
	for rank := range bids {
		context = max(context, bids[rank].context+1)
		if bids[rank].color == bids[w.rank].color {
			members = append(members, rank)
		}
	}
	w.engine.Lock()
	w.lastContext = context
	w.engine.Unlock()
	if bids[w.rank].color < 0 {
		return nil, nil, nil
	}
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(bids[a].key, bids[b].key) })
	team, err = w.newTeam(context, members)
	return team, members, err
}

// newTeam makes the World of some ranks of this one, of which it is not known yet where their
// blocks are.
func (w *World) newTeam(context uint32, members []int) (*World, error) {
	size, rank := len(members), slices.Index(members, w.rank)
	inJob, j := make([]int, size), &job{ranks: make([]introduction, size), contacts: make([]contact, size)}
	for i, member := range members {
		inJob[i] = w.InJob(member)
		j.ranks[i], j.contacts[i] = w.job.ranks[member], w.job.contacts[member]
		j.contacts[i].block = Places{}
	}
	j.hosts = hostsOf(j.contacts, j.ranks)
	block, err := w.home.device.AllocateMemory(blockLength(size))
	if err != nil {
		return nil, err
	}
	region, err := w.registry.Devices().RegisterMapped(block)
	if err != nil {
		return nil, errors.Join(err, w.home.device.FreeMemory(block))
	}
	t := newMembership(w.endpoint, rank, size, block, newTeamRoster(w.root.roster, inJob))
	t.root, t.context, t.inJob, t.region = w.root, context, inJob, region
	t.partial.Store(true)
	t.job, t.hosts, t.toll, t.linked = j, j.hosts, j.toll(), j.linked()
	t.barrier.own.context().Store(context)
	stopSevering, stopListening := t.roster.beforehand(t.lines.sever), t.roster.relayTo(t.noteFailure)
	t.roster.join()
	t.end = func() { t.roster.quit(); stopSevering(); stopListening() }
	t.changeWorlds(func(worlds []*World) []*World { return append(worlds, t) })
	return t, nil
}

// changeWorlds replaces the Worlds that the rank is in.
func (e *endpoint) changeWorlds(change func([]*World) []*World) {
	e.engine.Lock()
	defer e.engine.Unlock()
	worlds := change(slices.Clone(*e.worlds.Load()))
	e.worlds.Store(&worlds)
}

// inContext is the World of a context, nil if there is none, or none any more.
func (e *endpoint) inContext(context uint32) *World {
	for _, w := range *e.worlds.Load() {
		if w.context == context {
			return w
		}
	}
	return nil
}

// Accompanies reports whether two Worlds are of one rank, so that a wait in one of them sees the progress of both.
func (w *World) Accompanies(other *World) bool { return w.endpoint == other.endpoint }

// InJob returns the number in the job of a rank of this World.
func (w *World) InJob(rank int) int {
	if w.inJob == nil {
		return rank
	}
	return w.inJob[rank]
}

// notInTeam tells whether a connection with rank was refused because the rank has closed the
// team, and notes that.
func (w *World) notInTeam(rank int, err error) bool {
	if w == w.root || !errors.Is(err, verbs.ErrRejected) {
		return false
	}
	w.part(rank)
	return true
}

// teams are those that are open, in the order of their contexts.
func (w *World) teams() []*World {
	if w != w.root {
		return nil
	}
	return (*w.worlds.Load())[1:]
}

// closeTeams closes all teams that are open, side by side, since other ranks may be about to
// close some of them one by one. In virtual time a rank has one goroutine.
func (w *World) closeTeams(ctx context.Context) error {
	teams := w.teams()
	errs := make([]error, len(teams))
	var closing sync.WaitGroup
	for i, t := range teams {
		if w.virtual() {
			errs[i] = t.CloseOwn(ctx)
		} else {
			closing.Go(func() { errs[i] = t.CloseOwn(ctx) })
		}
	}
	closing.Wait()
	return errors.Join(errs...)
}

// firstLook is how long the last meeting of a team lasts before this rank looks for who deserts it. It
// looks again after twice as long each time.
const firstLook = 200 * time.Millisecond

// meetLast is the meeting of ranks that leave. Who does not come to its end deserts it.
func (w *World) meetLast(ctx context.Context) error {
	if w == w.root {
		return w.last.Meet(ctx, "Close", 0, 1)
	}
	for limit := firstLook; ; limit *= 2 {
		err := w.last.Meet(w.within(ctx, limit), "Close", 0, 1)
		if err == nil || cutBy(ctx, err) {
			return err
		}
		// What has ended the body of a rank that has failed may be a deadline, too.
		if Failed(err) != nil || !Is(err, context.DeadlineExceeded) || w.deserted() {
			w.desert()
			return err
		}
	}
}

// desert tells others that this rank has no part in the last meeting, or gives it up.
func (w *World) desert() { w.last.own.left().Store(uint32(w.rank) + 1) }

// deserted tells whether a rank that this one hears from in the last meeting has deserted that.
func (w *World) deserted() bool {
	for _, rank := range w.heard() {
		if !w.Mapped(rank) {
			w.attend(rank)
			if _, ended := w.endedLeaving(rank); ended {
				return true
			}
			continue
		}
		if !w.approachable(rank) {
			continue
		}
		last, err := w.last.block("Close", rank)
		if err != nil {
			return true
		}
		// In this order: who has come to the end gives its block back, for whatever comes next.
		if barrier, err := w.barrier.block("Close", rank); last.left().Load() != 0 && err == nil && barrier.context().Load() == w.context {
			return true
		}
	}
	return false
}

// heard are the ranks that this one hears from in a meeting.
func (w *World) heard() (ranks []int) {
	switch {
	case w.rooted && w.rank != 0:
		return []int{parent(w.rank)}
	case w.rooted:
		for rank := 1; rank < w.size; rank++ {
			ranks = append(ranks, rank)
		}
	default:
		for distance := 1; distance < w.size; distance *= 2 {
			ranks = append(ranks, (w.rank-distance+w.size)%w.size)
		}
	}
	return ranks
}

// abandon leaves a team of which this rank has only its own part, once more after ctx has ended, and reports whether nothing is
// left of that. It wakes those that wait in outlast and that it has met.
// It connects with no others: connecting needs a reply, and a stopped process never replies. Those look again by themselves.
func (w *World) abandon(ctx context.Context) (done bool, err error) {
	if !w.leaving.left {
		w.desert()
		w.barrier.leave()
		w.wakeAll()
		w.leaving.left = true
	}
	if err := w.settle(ctx); err != nil {
		return false, err
	}
	return true, w.departTeam(false)
}

// departTeams ends this rank's membership in all teams without waiting for another rank.
func (w *World) departTeams() error {
	var err error
	for _, t := range w.teams() {
		t.closed.Store(true)
		err = errors.Join(err, t.departTeam(false))
	}
	return err
}

// departTeam ends this rank's membership in the team. What others may still look at lasts as
// long as the endpoint, unless all have met.
func (w *World) departTeam(met bool) error {
	err := w.closeUnshrunk()
	w.end()
	w.aside.end()
	w.endWaits()
	err = errors.Join(err, w.attached.close())
	w.changeWorlds(func(worlds []*World) []*World {
		return slices.DeleteFunc(worlds, func(other *World) bool { return other == w })
	})
	w.closeLinks()
	if met {
		err = errors.Join(err, w.post.close(), w.region.Deregister(), w.home.device.FreeMemory(w.block))
	}
	return err
}

// closeLinks ends all links of a team.
func (w *World) closeLinks() {
	w.engine.Lock()
	defer w.engine.Unlock()
	for rank := range w.size {
		for _, l := range [...]*Link{w.links[rank].Load(), w.cardLinks[rank].Load()} {
			if l != nil && l.broken.CompareAndSwap(nil, &linkError{errWorldClosed}) {
				l.card.forget(l.pair.Number())
				l.close()
			}
		}
		if end := w.muteEnds[rank]; end != nil {
			w.hangUp(rank, end)
		}
	}
}
