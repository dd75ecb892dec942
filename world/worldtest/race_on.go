//go:build race

package worldtest

// mostStarted is how many ranks Run has be processes at most. The race detector sees what both sides do within
// one process, and a process with it takes its time to start.
const mostStarted = 3
