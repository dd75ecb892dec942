//go:build race

package hashtable

// raced reports whether the race detector is in the program. The detector must learn of a permitted overlap. A record
// or a cleared block may lie where an index was. Operations with an old view may still read a bucket there, by atomic
// operations, and then find that it is no bucket (see locate). So words are stored there atomically. This applies to
// clients of a served table, too: one process may have several sessions.
const raced = true
