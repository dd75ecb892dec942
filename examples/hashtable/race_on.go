//go:build race

package hashtable

// raced tells whether the race detector is in the program. It has to be told that all is well where a record is now,
// or a block that is cleared, and an index was: others that have heard of no other one yet read a bucket there
// still, by atomic operations, and find then that it is none (see locate). So words are stored there atomically, also for
// clients of a table that is served: the memory of one process has sessions of several.
const raced = true
