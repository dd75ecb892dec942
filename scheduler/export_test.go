package scheduler

// Relevant returns the schemes that may matter to epochs of the pattern.
func (p Pattern) Relevant() Scheme { return p.relevant }
