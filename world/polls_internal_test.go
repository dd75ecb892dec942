package world

// Polls is how often any goroutine of a rank has polled.
func Polls(w *World) uint64 {
	w.post.mu.Lock()
	defer w.post.mu.Unlock()
	return w.demand.polls
}
