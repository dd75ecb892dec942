package main

import (
	"encoding/binary"
	"fmt"
)

// leastValue is the length of the shortest value: its record, its version, and a word that follows from both.
const leastValue = 24

// keyBytes is the length of a key.
const keyBytes = 16

// keyOf returns the key of a record.
func keyOf(record int) string { return fmt.Sprintf("key:%012d", record) }

// fill sets value to the value of a version of a record.
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

// verify returns an error if value is not a value of this record with size bytes.
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
