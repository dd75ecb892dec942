package scheduler

// Ways are those that may matter to epochs of the pattern.
func (p Pattern) Ways() Scheme { return p.ways }
