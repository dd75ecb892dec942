package reduce

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Level is the kind of instructions that functions of many elements are made of.
type Level uint8

// The levels, each of which has what the one before it has.
const (
	// Plain is Go, on every processor.
	Plain Level = iota
	// AVX2 has vectors of 32 bytes.
	AVX2
	// AVX512 has vectors of 64 bytes; of the extension it takes the parts F, BW and
	// DQ, and VL, without which no processor has the others.
	AVX512
	levels
)

var levelNames = [levels]string{"Plain", "AVX2", "AVX512"}

func (l Level) String() string {
	if l < levels {
		return levelNames[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// ErrLevel: the processor does not have the level.
var ErrLevel = errors.New("level not of this processor")

// functions are those of one level. Where a level has no vector function of its
// own for a kind and an operation, it is the plain one.
type functions [Kinds][ops]Func

// offered are the functions of the levels that the processor has, nil of others.
var offered = [levels]*functions{Plain: &plain, AVX2: withAVX2(), AVX512: withAVX512()}

// Levels are those that the processor has, Plain first and the best last.
func Levels() []Level {
	var has []Level
	for l, f := range offered {
		if f != nil {
			has = append(has, Level(l))
		}
	}
	return has
}

// level is the one of lookups from now on.
var level atomic.Uint32

func init() {
	has := Levels()
	if !raced {
		level.Store(uint32(has[len(has)-1]))
	}
}

// Use makes the functions that are looked up from now on, not those that somebody
// has, of a level, and returns the one before. An error is [ErrLevel] and changes
// nothing. Without Use, the level is the best that the processor has; but Plain in
// a program built with -race, for the race detector sees into nothing else.
func Use(l Level) (previous Level, err error) {
	if l >= levels || offered[l] == nil {
		return Level(level.Load()), fmt.Errorf("reduce: %w: %v; allowed are %v", ErrLevel, l, Levels())
	}
	return Level(level.Swap(uint32(l))), nil
}
