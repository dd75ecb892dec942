package main

import (
	"encoding/binary"
	"fmt"
)

// leastValue is the shortest value: it has its record, its version, and a word that follows
// from both.
const leastValue = 24

// keyBytes is how long a key is.
const keyBytes = 16

// keyOf is a record's key, of keyBytes.
func keyOf(record int) string { return fmt.Sprintf("key:%012d", record) }

// fill makes value what a version of a record has.
func fill(value []byte, record, version uint64) {
	binary.LittleEndian.PutUint64(value, record)
	binary.LittleEndian.PutUint64(value[8:], version)
	word := mix(record<<32 ^ version)
	for rest := value[16:]; len(rest) > 0; word++ {
		if len(rest) < 8 {
			var last [8]byte
			binary.LittleEndian.PutUint64(last[:], word)
			copy(rest, last[:])
			return
		}
		binary.LittleEndian.PutUint64(rest, word)
		rest = rest[8:]
	}
}

// verify says what is wrong with the value of a record of size bytes.
func verify(value []byte, record uint64, size int) error {
	if len(value) != size {
		return fmt.Errorf("record %d has a value of %d bytes, want %d", record, len(value), size)
	}
	if of := binary.LittleEndian.Uint64(value); of != record {
		return fmt.Errorf("record %d has a value of record %d", record, of)
	}
	word := mix(record<<32 ^ binary.LittleEndian.Uint64(value[8:]))
	for at := 16; at < size; at, word = at+8, word+1 {
		if rest := value[at:]; len(rest) >= 8 {
			if binary.LittleEndian.Uint64(rest) != word {
				return fmt.Errorf("record %d has a value that nobody wrote, from byte %d on", record, at)
			}
			continue
		}
		for i, b := range value[at:] {
			if b != byte(word>>(8*i)) {
				return fmt.Errorf("record %d has a value that nobody wrote, at byte %d", record, at+i)
			}
		}
	}
	return nil
}
