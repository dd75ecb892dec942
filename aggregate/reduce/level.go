package reduce

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Level is the instruction set of the functions that combine many elements.
type Level uint8

// The levels. Each includes the instructions of the one before.
const (
	// Plain is Go, on every processor.
	Plain Level = iota
	// AVX2 has vectors of 32 bytes.
	AVX2
	// AVX512 has vectors of 64 bytes. It needs the extensions F, BW, DQ and VL.
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

// ErrLevel reports that the processor does not have the level.
var ErrLevel = errors.New("the processor does not have this level")

// functions are the functions of one level. Where a level has no vector function for a kind and an operation, the entry
// is the plain function.
type functions [Kinds][ops]Func

// offered has the functions of the levels that the processor has, and nil for the others.
var offered = [levels]*functions{Plain: &plain, AVX2: withAVX2(), AVX512: withAVX512()}

// Levels returns the levels that the processor has, from Plain to the best.
func Levels() []Level {
	var has []Level
	for l, f := range offered {
		if f != nil {
			has = append(has, Level(l))
		}
	}
	return has
}

// level is the level of later lookups.
var level atomic.Uint32

func init() {
	has := Levels()
	if !raced {
		level.Store(uint32(has[len(has)-1]))
	}
}

// Use sets the level of functions that are looked up from now on, and returns the previous level. Functions already
// looked up do not change. If the processor does not have the level, Use returns an [ErrLevel] and changes nothing. The
// initial level is the best of the processor, or Plain in a program built with -race, because the race detector sees
// only Go code.
func Use(l Level) (previous Level, err error) {
	if l >= levels || offered[l] == nil {
		return Level(level.Load()), fmt.Errorf("reduce: %w: %v; allowed are %v", ErrLevel, l, Levels())
	}
	return Level(level.Swap(uint32(l))), nil
}
