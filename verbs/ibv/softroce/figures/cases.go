package main

import (
	"context"
	"fmt"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
)

// A figure is a kind of operation and what it is compared with.
type figure struct {
	name, about string
	// count operations of bytes bytes are followed by a flush, turns times.
	bytes, count, turns int
	operate             func(win *window.Window[int64], buffer []int64, at int) error
	// byCard uses a window made with CardAtomics.
	byCard bool
	// opcode is what the card executes for each operation. It is unused for a message that carries several.
	opcode verbs.Opcode
	// program is perftest's program, messages the number that it sends, and times the number of its messages per
	// operation of ours.
	program  string
	options  []string
	messages int
	times    float64
	kind     kind
	goal     float64
}

// kind is how a figure is measured and read.
type kind uint8

const (
	latency   kind = iota // the median of turns, in us; less is better
	single                // as latency, compared with the inverse of a rate of messages of which one is outstanding at a time
	bandwidth             // in MB (10^6 bytes) per second; more is better
	rate                  // in millions of operations per second; more is better
)

var units = [...]string{latency: "us", single: "us", bandwidth: "MB/s", rate: "Mop/s"}

// column returns perftest's column.
func (k kind) column() int {
	switch k {
	case latency:
		return typicalColumn
	case bandwidth:
		return averageColumn
	}
	return rateColumn
}

// in converts a value of that column to the unit of the kind.
func (k kind) in(value float64) float64 {
	switch k {
	case single:
		return 1 / value
	case bandwidth:
		return value * 1.048576
	}
	return value
}

func (k kind) lessIsBetter() bool { return k == latency || k == single }

// reached reports whether a ratio is at least as good as a goal.
func (k kind) reached(ratio, goal float64) bool {
	if k.lessIsBetter() {
		return ratio <= goal
	}
	return ratio >= goal
}

const (
	words       = 4 << 20 // of 8 bytes in the window and the buffer
	fewMessages = 3000
)

func put(win *window.Window[int64], buffer []int64, at int) error { return win.Put(buffer, 1, at) }
func get(win *window.Window[int64], buffer []int64, at int) error { return win.Get(buffer, 1, at) }

// scatter puts to scattered places.
func scatter(win *window.Window[int64], buffer []int64, at int) error {
	return win.Put(buffer, 1, at*7919%words)
}

func fetch(win *window.Window[int64], buffer []int64, at int) error {
	return win.FetchAndOp(window.Sum, 1, &buffer[0], 1, at)
}

func figures() []*figure {
	return []*figure{
		{name: "put", about: "put and flush", bytes: 8, count: 1, turns: fewMessages, operate: put, opcode: verbs.OpRDMAWrite,
			program: "ib_write_lat", messages: fewMessages, times: 2, goal: 1.5},
		{name: "put_single", about: "put and flush", bytes: 8, count: 1, turns: fewMessages, operate: put, opcode: verbs.OpRDMAWrite,
			program: "ib_write_bw", options: []string{"-t", "1", "-Q", "1"}, messages: fewMessages, times: 1, kind: single, goal: 1.5},
		{name: "get", about: "get and flush", bytes: 8, count: 1, turns: fewMessages, operate: get, opcode: verbs.OpRDMARead,
			program: "ib_read_lat", messages: fewMessages, times: 1, goal: 1.4},
		{name: "fop", about: "fetch-and-op and flush, by the target's processor", bytes: 8, count: 1, turns: 500, operate: fetch, opcode: verbs.OpFetchAdd,
			program: "ib_atomic_lat", messages: fewMessages, times: 1},
		{name: "fop_card", about: "fetch-and-op and flush, in a window that leaves them to cards", bytes: 8, count: 1, turns: fewMessages, operate: fetch, byCard: true, opcode: verbs.OpFetchAdd,
			program: "ib_atomic_lat", messages: fewMessages, times: 1, goal: 1.5},
		{name: "put_bw", about: "64 puts, one flush", bytes: 64 << 10, count: 64, turns: 10, operate: put, opcode: verbs.OpRDMAWrite,
			program: "ib_write_bw", messages: 640, times: 1, kind: bandwidth, goal: 0.85},
		{name: "put_bw", about: "64 puts, one flush", bytes: 1 << 20, count: 64, turns: 1, operate: put, opcode: verbs.OpRDMAWrite,
			program: "ib_write_bw", messages: 64, times: 1, kind: bandwidth, goal: 0.85},
		{name: "get_bw", about: "64 gets, one flush", bytes: 64 << 10, count: 64, turns: 10, operate: get, opcode: verbs.OpRDMARead,
			program: "ib_read_bw", messages: 640, times: 1, kind: bandwidth, goal: 0.85},
		{name: "put_rate", about: "1000 puts all over the window, one flush", bytes: 8, count: 1000, turns: 200, operate: scatter, opcode: verbs.OpRDMAWrite,
			program: "ib_write_bw", messages: 5000, times: 1, kind: rate, goal: 5},
	}
}

// turn is one turn of ours.
func (f *figure) turn(ctx context.Context, win *window.Window[int64], buffer []int64) error {
	n := f.bytes / 8
	for i := range f.count {
		at := i * n % (words - n)
		if err := f.operate(win, buffer[at:at+n], at); err != nil {
			return err
		}
	}
	return win.Flush(ctx, 1)
}

func (f *figure) String() string { return fmt.Sprintf("%s:%d", f.name, f.bytes) }
