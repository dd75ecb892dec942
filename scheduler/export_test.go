package scheduler

// Relevant are the ways that may matter to epochs of the pattern.
func (p Pattern) Relevant() Scheme { return p.relevant }
