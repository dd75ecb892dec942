package hashtable

import (
	"encoding/binary"
	"fmt"
)

// A slot is a word that describes an entry. The package documentation lists its bits.
type slot uint64

const (
	slotTaken   slot = 1 << 63
	slotLive    slot = 1 << 62
	slotCounter slot = 1 << 61
	slotFrozen  slot = 1 << 60
	// Values of slots in an index whose keys have moved to another: slotClosed where the slot was empty, slotMoved
	// where it had a key.
	slotClosed = slotTaken | slotFrozen | 1
	slotMoved  = slotTaken | slotFrozen | 2

	fingerprintShift = 46
	fingerprintBits  = 14
	fingerprintMask  = slot(1<<fingerprintBits-1) << fingerprintShift

	lengthShift = 32
	lengthBits  = 14
	lengthMask  = 1<<lengthBits - 1

	placeBits = 32
)

const (
	wordBytes   = 8
	bucketSlots = 8
	lineWords   = 8
	// tailWord, in line 0, counts the allocated words of the record space.
	tailWord = 0
	// The announcements of a rank's Runs fill announceLines lines. The first announceLines of them are each in
	// another line.
	announcements = 128
	announceLines = 16
	announceStart = lineWords
	// waitingWord counts the words, of all owners' record space, in this rank's retire lists. It is read along with the
	// announcements.
	waitingWord    = announceStart + announcements
	announcedWords = announcements + 1
	// The heads of the owner's lists of free pieces.
	listStart = announceStart + announcements + lineWords
	classes   = 56
	// The controls of the rank's indexes, and one free block for each level.
	currentWord = listStart + classes
	nextWord    = currentWord + 1
	blockStart  = currentWord + lineWords
	headerWords = blockStart + mostLevels
	// mostProbes is the number of buckets, from its home on, in which a new key may be.
	mostProbes  = 64
	mostBuckets = MaxSlots / bucketSlots
	// longestRecord is the length of the longest record in words, as a slot can express it.
	longestRecord = lengthMask
	// lengthsBytes and counterBytes are the lengths of the parts of a record other than key and value.
	lengthsBytes = wordBytes
	counterBytes = wordBytes
)

// MaxEntryBytes is the greatest length of a key and its value together, in bytes. A counter counts as 0 bytes.
const MaxEntryBytes = longestRecord*wordBytes - lengthsBytes - counterBytes

func (s slot) taken() bool                   { return s&slotTaken != 0 }
func (s slot) live() bool                    { return s&slotLive != 0 }
func (s slot) counter() bool                 { return s&slotCounter != 0 }
func (s slot) frozen() bool                  { return s&slotFrozen != 0 }
func (s slot) matches(fingerprint slot) bool { return s&fingerprintMask == fingerprint }
func (s slot) words() int                    { return int(s>>lengthShift) & lengthMask }
func (s slot) place() int                    { return int(uint32(s)) }

// prefix returns the number of bytes of the record before its word of lengths.
func (s slot) prefix() int {
	if s.counter() {
		return counterBytes
	}
	return 0
}

// recordBytes returns the length of the record from its word of lengths on.
func (s slot) recordBytes() int { return s.words()*wordBytes - s.prefix() }

// newSlot returns a slot that refers to the record of a live entry.
func newSlot(fingerprint slot, counter bool, place, words int) slot {
	s := slotTaken | slotLive | fingerprint | slot(words)<<lengthShift | slot(place)
	if counter {
		s |= slotCounter
	}
	return s
}

// A home is the place of a key: its owner, its bucket and its fingerprint.
type home struct {
	owner       int
	low         uint32
	fingerprint slot
}

// home takes the owner from the high bits of the hash's upper half and the fingerprint from the low bits of that
// half. The bucket is in the high bits of the lower half.
func (t *Table) home(key string) home {
	hash := t.hash(key)
	high := hash >> 32
	return home{
		owner:       int(high * uint64(t.size) >> 32),
		low:         uint32(hash),
		fingerprint: slot(high) << fingerprintShift & fingerprintMask,
	}
}

// CounterBytes returns the record space, in bytes, of a counter whose key has keyLength bytes.
func CounterBytes(keyLength int) int { return pieceWords(recordWords(true, keyLength, 0)) * wordBytes }

// EntryBytes returns the record space, in bytes, of a value with a key of these lengths in bytes.
func EntryBytes(keyLength, valueLength int) int {
	return pieceWords(recordWords(false, keyLength, valueLength)) * wordBytes
}

func recordWords(counter bool, keyLength, valueLength int) int {
	bytes := lengthsBytes + keyLength + valueLength
	if counter {
		bytes += counterBytes
	}
	return (bytes + wordBytes - 1) / wordBytes
}

// encodeCounter writes the record of a counter into record, which has the right length.
func encodeCounter(record []byte, key string, count uint64) {
	binary.NativeEndian.PutUint64(record, count)
	encodeBytes(record[counterBytes:], key, nil)
}

// encodeBytes writes the record of a value into record, which has the right length.
func encodeBytes(record []byte, key string, value []byte) {
	binary.NativeEndian.PutUint32(record, uint32(len(key)))
	binary.NativeEndian.PutUint32(record[4:], uint32(len(value)))
	n := lengthsBytes
	n += copy(record[n:], key)
	n += copy(record[n:], value)
	clear(record[n:])
}

// lengths reads and checks the word of lengths of s's record. read is the record from that word on, or the beginning
// of that.
func (s slot) lengths(read []byte) (key, value int, err error) {
	key, value = int(binary.NativeEndian.Uint32(read)), int(binary.NativeEndian.Uint32(read[4:]))
	if got := s.prefix() + lengthsBytes + key + value; got > s.words()*wordBytes || s.counter() && value != 0 {
		return 0, 0, fmt.Errorf("%w: a record of %d bytes says that its key has %d and its value %d", ErrCorrupt, s.words()*wordBytes, key, value)
	}
	return key, value, nil
}

// check returns an error for a slot that no operation has written.
func (t *Table) check(s slot) error {
	if !s.taken() || s.words()*wordBytes < s.prefix()+lengthsBytes || s.place()+pieceWords(s.words()) > t.recordWords {
		return fmt.Errorf("%w: slot %#x, of %d record words", ErrCorrupt, uint64(s), t.recordWords)
	}
	return nil
}
