package job

// That a connection has ended tells that its rank has failed, but not whether that failed
// by itself or stopped because another had. A rank that stops has told of that other one
// before, but perhaps over another connection, and so has who is still there. So before
// such a failure is recorded all is served that had come by then: what is recorded first
// is what the collectives of this rank name.

// ends notes that the queue pair has ended.
func (l *Link) ends(err error) {
	if l.ending == nil {
		l.ending = err
		l.world.ending = append(l.world.ending, l)
	}
}

// endLinks fails the first links of those that have ended if nothing more has come since,
// or if that has gone on for long.
func (w *World) endLinks(links int, quiet bool) {
	if w.putOffs++; !quiet && w.putOffs < mostToCatchUp {
		return
	}
	w.putOffs = 0
	for _, l := range w.ending[:links] {
		l.fail(l.ending)
	}
	rest := copy(w.ending, w.ending[links:])
	clear(w.ending[rest:])
	w.ending = w.ending[:rest]
}
