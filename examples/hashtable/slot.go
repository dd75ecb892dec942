package hashtable

import (
	"encoding/binary"
	"fmt"
)

// A slot is the word that says all of an entry; package documentation has its bits.
type slot uint64

const (
	slotTaken   slot = 1 << 63
	slotLive    slot = 1 << 62
	slotCounter slot = 1 << 61
	slotFrozen  slot = 1 << 60
	// What is left in an index where a slot was empty, and where it had a key, when its keys
	// moved to another.
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
	// tailWord, in line 0, counts the allocated record words.
	tailWord = 0
	// The announcements of a rank's Runs are in some lines, the first ones each in another.
	announcements = 128
	announceLines = 16
	announceStart = lineWords
	// waitingWord counts the words of all owners' record space in this rank's bags. It is read
	// along with the announcements.
	waitingWord    = announceStart + announcements
	announcedWords = announcements + 1
	// The heads of the owner's lists of free pieces.
	listStart = announceStart + announcements + lineWords
	classes   = 56
	// The controls of the rank's indexes, and for each level one block that is free.
	currentWord = listStart + classes
	nextWord    = currentWord + 1
	blockStart  = currentWord + lineWords
	headerWords = blockStart + mostLevels
	// mostProbes is how many buckets a new key may be in, from its home on.
	mostProbes  = 64
	mostBuckets = MaxSlots / bucketSlots
	// longestRecord is in words, as a slot can say.
	longestRecord = lengthMask
	// lengthsBytes and counterBytes are what a record has beside key and value.
	lengthsBytes = wordBytes
	counterBytes = wordBytes
)

// MaxEntryBytes is the most that a key and its value have together. A counter counts
// for none.
const MaxEntryBytes = longestRecord*wordBytes - lengthsBytes - counterBytes

func (s slot) taken() bool                   { return s&slotTaken != 0 }
func (s slot) live() bool                    { return s&slotLive != 0 }
func (s slot) counter() bool                 { return s&slotCounter != 0 }
func (s slot) frozen() bool                  { return s&slotFrozen != 0 }
func (s slot) matches(fingerprint slot) bool { return s&fingerprintMask == fingerprint }
func (s slot) words() int                    { return int(s>>lengthShift) & lengthMask }
func (s slot) place() int                    { return int(uint32(s)) }

// prefix is how many bytes of the record are before its word of lengths.
func (s slot) prefix() int {
	if s.counter() {
		return counterBytes
	}
	return 0
}

// recordBytes is how long the record is from there on.
func (s slot) recordBytes() int { return s.words()*wordBytes - s.prefix() }

// newSlot refers to a record of a live entry.
func newSlot(fingerprint slot, counter bool, place, words int) slot {
	s := slotTaken | slotLive | fingerprint | slot(words)<<lengthShift | slot(place)
	if counter {
		s |= slotCounter
	}
	return s
}

// A home is where a key belongs.
type home struct {
	owner       int
	low         uint32
	fingerprint slot
}

// home takes the owner from the high bits of the hash's upper half, and the
// fingerprint from the low ones. The lower half has the bucket in its high bits.
func (t *Table) home(key string) home {
	hash := t.hash(key)
	high := hash >> 32
	return home{
		owner:       int(high * uint64(t.size) >> 32),
		low:         uint32(hash),
		fingerprint: slot(high) << fingerprintShift & fingerprintMask,
	}
}

// CounterBytes is the record space that a counter takes whose key has keyLength
// bytes.
func CounterBytes(keyLength int) int { return pieceWords(recordWords(true, keyLength, 0)) * wordBytes }

// EntryBytes is the record space that a value takes under a key of these lengths.
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

// encodeCounter writes the record of a counter into record, which has its words.
func encodeCounter(record []byte, key string, count uint64) {
	binary.NativeEndian.PutUint64(record, count)
	encodeBytes(record[counterBytes:], key, nil)
}

// encodeBytes writes the record of a value into record, which has its words.
func encodeBytes(record []byte, key string, value []byte) {
	binary.NativeEndian.PutUint32(record, uint32(len(key)))
	binary.NativeEndian.PutUint32(record[4:], uint32(len(value)))
	n := lengthsBytes
	n += copy(record[n:], key)
	n += copy(record[n:], value)
	clear(record[n:])
}

// lengths reads and checks the word of lengths of s's record. read is the record from
// there on, or the beginning of it.
func (s slot) lengths(read []byte) (key, value int, err error) {
	key, value = int(binary.NativeEndian.Uint32(read)), int(binary.NativeEndian.Uint32(read[4:]))
	if got := s.prefix() + lengthsBytes + key + value; got > s.words()*wordBytes || s.counter() && value != 0 {
		return 0, 0, fmt.Errorf("%w: a record of %d bytes says that its key has %d and its value %d", ErrCorrupt, s.words()*wordBytes, key, value)
	}
	return key, value, nil
}

// check refuses a slot that no operation has written.
func (t *Table) check(s slot) error {
	if !s.taken() || s.words()*wordBytes < s.prefix()+lengthsBytes || s.place()+pieceWords(s.words()) > t.recordWords {
		return fmt.Errorf("%w: slot %#x, of %d record words", ErrCorrupt, uint64(s), t.recordWords)
	}
	return nil
}
