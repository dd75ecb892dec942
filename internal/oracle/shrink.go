package oracle

import (
	"slices"

	"github.com/onesided/rma/window"
)

// Shrink returns a smaller legal program for which fails still returns true, as it must for p. It removes phases,
// windows, ranks, steps and elements that are not needed, and simplifies the synchronization. It calls fails often.
// If a failure does not occur every time, fails may try several times.
func Shrink(p *Program, fails func(*Program) bool) *Program {
	k := &shrinker{best: p, fails: fails}
	for {
		before := k.accepted
		k.phases()
		k.windows()
		k.ranks()
		k.merge()
		k.sessions()
		k.steps()
		k.simplify()
		if k.accepted == before {
			return k.best
		}
	}
}

// A shrinker tries changes to a program that fails.
type shrinker struct {
	best     *Program
	fails    func(*Program) bool
	accepted int
}

// try applies a change to a copy of the best program. The copy replaces it if it still fails.
func (k *shrinker) try(change func(p *Program)) bool {
	p := k.best.Clone()
	change(p)
	if p.Check() != nil || !k.fails(p) {
		return false
	}
	k.best = p
	k.accepted++
	return true
}

// without tries to remove runs of things, of which there are count: long runs first.
func (k *shrinker) without(count func() int, remove func(p *Program, from, to int)) {
	for length := count(); length > 0; length /= 2 {
		for from := count() - length; from >= 0; from -= length {
			k.try(func(p *Program) { remove(p, from, from+length) })
			from = min(from, count())
		}
	}
}

func (k *shrinker) phases() {
	k.without(func() int { return len(k.best.Phases) }, func(p *Program, from, to int) {
		p.Phases = slices.Delete(p.Phases, from, to)
		for i := range p.Phases {
			if i == len(p.Phases)-1 {
				p.Phases[i].Loose = false
			}
		}
	})
}

func (k *shrinker) windows() {
	for win := len(k.best.Windows) - 1; win >= 0; win-- {
		k.try(func(p *Program) {
			p.Windows = slices.Delete(p.Windows, win, win+1)
			for i := range p.Phases {
				f := &p.Phases[i]
				f.Syncs = slices.Delete(f.Syncs, win, win+1)
				f.Steps = slices.DeleteFunc(f.Steps, func(s Step) bool { return s.Window == win })
				for j := range f.Steps {
					if f.Steps[j].Window > win {
						f.Steps[j].Window--
					}
				}
			}
		})
	}
}

// ranks tries to remove each rank. The ranks after it move up.
func (k *shrinker) ranks() {
	for rank := k.best.Ranks - 1; rank >= 0; rank-- {
		move := func(r int) int {
			if r > rank {
				return r - 1
			}
			return r
		}
		k.try(func(p *Program) {
			p.Ranks--
			for i := range p.Windows {
				p.Windows[i].Counts = slices.Delete(p.Windows[i].Counts, rank, rank+1)
			}
			for i := range p.Phases {
				f := &p.Phases[i]
				for j := range f.Syncs {
					y := &f.Syncs[j]
					if y.Mode != Started {
						continue
					}
					y.Targets = slices.Delete(y.Targets, rank, rank+1)
					for origin, targets := range y.Targets {
						y.Targets[origin] = moved(targets, rank, move)
					}
				}
				f.Steps = slices.DeleteFunc(f.Steps, func(s Step) bool {
					return s.Rank == rank || s.Target == rank && (s.Call.Operates() || s.Call >= Flush && s.Call <= Unlock)
				})
				for j := range f.Steps {
					s := &f.Steps[j]
					s.Rank, s.Target, s.Ranks = move(s.Rank), move(s.Target), moved(s.Ranks, rank, move)
				}
			}
		})
	}
}

// merge tries to make one rank do what another does.
func (k *shrinker) merge() {
	for rank := range k.best.Ranks {
		for other := range rank {
			k.changed(func(p *Program) {
				for i := range p.Phases {
					f := &p.Phases[i]
					for j := range f.Steps {
						if f.Steps[j].Rank == rank {
							f.Steps[j].Rank = other
						}
					}
				}
			})
			k.changed(func(p *Program) {
				for i := range p.Windows {
					counts := p.Windows[i].Counts
					counts[other] = max(counts[other], counts[rank])
				}
				for i := range p.Phases {
					f := &p.Phases[i]
					for j := range f.Steps {
						if f.Steps[j].Target == rank {
							f.Steps[j].Target = other
						}
					}
				}
			})
		}
	}
}

// moved returns a group without a rank.
func moved(ranks []int, without int, move func(int) int) []int {
	if ranks == nil {
		return nil
	}
	out := []int{}
	for _, r := range ranks {
		if r != without {
			out = append(out, move(r))
		}
	}
	return out
}

// sessions tries to remove each lock epoch with its operations, and then the lock epoch alone, whose accesses another
// epoch may cover.
func (k *shrinker) sessions() {
	for phase := len(k.best.Phases) - 1; phase >= 0; phase-- {
		for i := len(k.best.Phases[phase].Steps) - 1; i >= 0; i-- {
			if i >= len(k.best.Phases[phase].Steps) {
				continue
			}
			s := k.best.Phases[phase].Steps[i]
			if s.Refused || s.Call != Lock && s.Call != LockAll {
				continue
			}
			k.try(func(p *Program) { p.Phases[phase].removeSession(i) })
		}
	}
}

// removeSession removes the lock epoch that step i begins.
func (f *Phase) removeSession(i int) {
	lock := f.Steps[i]
	at, over := -1, false
	f.Steps = slices.DeleteFunc(f.Steps, func(s Step) bool {
		at++
		if at < i || over || s.Rank != lock.Rank || s.Window != lock.Window || lock.Call == Lock && s.Target != lock.Target {
			return false
		}
		over = !s.Refused && (s.Call == UnlockAll || s.Call == Unlock)
		return s.Call != Store && s.Call != Load
	})
}

func (k *shrinker) steps() {
	for phase := len(k.best.Phases) - 1; phase >= 0; phase-- {
		k.without(func() int { return len(k.best.Phases[phase].Steps) }, func(p *Program, from, to int) {
			p.Phases[phase].Steps = slices.Delete(p.Phases[phase].Steps, from, to)
		})
	}
}

// simplify tries to simplify the rest.
func (k *shrinker) simplify() {
	for i := range k.best.Windows {
		for _, simpler := range []func(w *Window){
			func(w *Window) { w.Create = false }, func(w *Window) { w.SingleElement = false }, func(w *Window) { w.SameOp = false },
			func(w *Window) { w.Unordered = false }, func(w *Window) { w.Immediate = false }, func(w *Window) { w.CardAtomics = false },
			func(w *Window) { w.Slots = min(w.Slots, 1) },
			func(w *Window) { w.Slots = 0 },
		} {
			k.changed(func(p *Program) { simpler(&p.Windows[i]) })
		}
		for rank := range k.best.Ranks {
			k.smaller(func(p *Program) *int { return &p.Windows[i].Counts[rank] })
		}
	}
	for i := range k.best.Phases {
		k.changed(func(p *Program) { p.Phases[i].Hasty = false })
		k.changed(func(p *Program) { p.Phases[i].Loose = false })
		for j := range k.best.Windows {
			k.sync(i, j)
		}
		for j := range k.best.Phases[i].Steps {
			k.step(i, j)
		}
	}
}

// changed tries a change if it changes the program.
func (k *shrinker) changed(change func(p *Program)) {
	p := k.best.Clone()
	change(p)
	if p.String() != k.best.String() {
		k.try(change)
	}
}

// smaller tries to make a count smaller.
func (k *shrinker) smaller(count func(p *Program) *int) {
	for now := *count(k.best); now > 0; now = *count(k.best) {
		done := true
		for _, n := range []int{0, 1, now / 2, now - now/4, now - 1} {
			if n < now && k.try(func(p *Program) { *count(p) = n }) {
				done = false
				break
			}
		}
		if done {
			return
		}
	}
}

func (k *shrinker) sync(phase, win int) {
	of := func(p *Program) *Sync { return &p.Phases[phase].Syncs[win] }
	k.changed(func(p *Program) { *of(p) = Sync{} })
	k.changed(func(p *Program) {
		f := &p.Phases[phase]
		*of(p) = Sync{Mode: Fenced, NoSucceed: true}
		f.Steps = slices.DeleteFunc(f.Steps, func(s Step) bool {
			return s.Window == win && !s.Refused && s.Call >= Flush && s.Call <= UnlockAll
		})
	})
	for _, simpler := range []func(y *Sync){
		func(y *Sync) { y.NoPrecede = false }, func(y *Sync) { y.NoSucceed = y.Mode == Fenced }, func(y *Sync) { y.Assert = false }, func(y *Sync) { y.Test = false },
	} {
		k.changed(func(p *Program) { simpler(of(p)) })
	}
	for rank := range of(k.best).Targets {
		k.changed(func(p *Program) { of(p).Targets[rank] = nil })
		for i := len(of(k.best).Targets[rank]) - 1; i >= 0; i-- {
			k.try(func(p *Program) { of(p).Targets[rank] = slices.Delete(of(p).Targets[rank], i, i+1) })
		}
	}
}

func (k *shrinker) step(phase, i int) {
	of := func(p *Program) *Step { return &p.Phases[phase].Steps[i] }
	k.changed(func(p *Program) { of(p).Member = 0 })
	plain := map[Call]Call{RPut: Put, PutNotify: Put, RGet: Get, RAccumulate: Accumulate, GetAccumulate: Accumulate, RGetAccumulate: GetAccumulate}
	if call, ok := plain[of(k.best).Call]; ok {
		k.try(func(p *Program) { s := of(p); s.Call, s.Request, s.Slot = call, 0, 0 })
	}
	plain = map[Call]Call{PutLayout: Put, GetLayout: Get, AccumulateLayout: Accumulate, AccumulateEach: Accumulate}
	if call, ok := plain[of(k.best).Call]; ok {
		k.try(func(p *Program) {
			s := of(p)
			s.Call, s.Count, s.From, s.To = call, s.To.elements(), Shape{}, Shape{}
		})
	}
	k.changed(func(p *Program) {
		if s := of(p); s.LockKind == window.Exclusive {
			s.LockKind = window.Shared
		}
	})
	k.smaller(func(p *Program) *int { return &of(p).Count })
	k.smaller(func(p *Program) *int { return &of(p).At })
}
