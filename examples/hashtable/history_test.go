package hashtable

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// historiesVariable names the directory for the histories. The files outlive ranks that are killed.
const historiesVariable = "HASHTABLE_HISTORIES"

// An input is an operation on a key, an output is its result, and a state is the value of a key.
type (
	input struct {
		kind opKind
		key  int
		arg  uint64
	}
	output struct {
		// unknown is set if the outcome of the operation is unknown.
		unknown, found, wrongKind bool
		value                     uint64
	}
	state struct {
		there, counter bool
		value          uint64
	}
)

// step reports whether an operation may return output in a state, and returns the state after it.
func (was state) step(in input, out output) (bool, state) {
	onCounter := in.kind == opAdd || in.kind == opCount
	if in.kind != opDelete && was.there && was.counter != onCounter {
		return out.unknown || out.wrongKind, was
	}
	next, value := was, was.value
	switch in.kind {
	case opPut:
		next, value = state{there: true, value: in.arg}, 0
	case opAdd:
		next = state{there: true, counter: true, value: was.value + in.arg}
		value = next.value
	case opDelete:
		next, value = state{}, 0
	}
	return out.unknown || out == output{found: was.there, value: value}, next
}

var tableModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := map[int][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(input).key
			keys[key] = append(keys[key], op)
		}
		parts := make([][]porcupine.Operation, 0, len(keys))
		for _, part := range keys {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return state{} },
	Step: func(was, in, out any) (bool, any) { return was.(state).step(in.(input), out.(output)) },
}

// A recorder writes the operations of one client, a line before and a line after each.
type recorder struct {
	s     *script
	file  *os.File
	lines bytes.Buffer
}

func (s *script) recorder(client int) *recorder {
	file, err := os.Create(filepath.Join(os.Getenv(historiesVariable), fmt.Sprintf("%d-%d", s.World.Rank(), client)))
	s.OK(err)
	return &recorder{s: s, file: file}
}

// now returns the time of a clock that all processes share.
func (r *recorder) now() int64 {
	var at unix.Timespec
	r.s.OK(unix.ClockGettime(unix.CLOCK_MONOTONIC, &at))
	return at.Nano()
}

// write writes the lines to the file, which outlives the process.
func (r *recorder) write() {
	_, err := r.file.Write(r.lines.Bytes())
	r.s.OK(err)
	r.lines.Reset()
}

// run runs inputs as one batch. It fails if an operation returns an error that is not permitted.
func (r *recorder) run(batch *Batch, inputs []input, permitted func(error) bool) {
	called := r.now()
	for _, in := range inputs {
		queueInput(batch, in)
		fmt.Fprintln(&r.lines, "call", called, in.kind, in.key, in.arg)
	}
	r.write()
	_ = batch.Run(r.s.Ctx)
	returned := r.now()
	for i, in := range inputs {
		result := batch.Result(i)
		out := output{found: result.Found, value: result.Count}
		switch err := result.Err; {
		case errors.Is(err, ErrKind):
			out = output{wrongKind: true}
		case err != nil:
			r.s.Check(permitted(err), "%v", err)
			out = output{unknown: true}
		case in.kind == opGet && result.Found:
			_, err := fmt.Sscan(string(result.Value), &out.value)
			r.s.Check(err == nil && bytes.Equal(result.Value, valueOf(out.value)), "read %q, which nobody put", result.Value)
		case in.kind == opPut:
			out.value = 0
		}
		fmt.Fprintln(&r.lines, "return", returned, out.unknown, out.found, out.wrongKind, out.value)
	}
	r.write()
	batch.Reset()
}

// valueOf returns the bytes that stand for a number. Their lengths differ.
func valueOf(n uint64) []byte {
	return fmt.Appendf(nil, "%d %s", n, bytes.Repeat([]byte{'.'}, int(n%70)))
}

func historyKey(n int) string { return fmt.Sprint("key ", n) }

func queueInput(batch *Batch, in input) {
	key := historyKey(in.key)
	switch in.kind {
	case opGet:
		batch.Get(key)
	case opCount:
		batch.Count(key)
	case opPut:
		batch.Put(key, valueOf(in.arg))
	case opAdd:
		batch.Add(key, in.arg)
	default:
		batch.Delete(key)
	}
}

// histories reads the histories of all ranks. An operation that did not return, or whose outcome is unknown, may take
// effect at any later time. Reads of this kind are left out.
func histories(t *testing.T, directory string) (all []porcupine.Operation) {
	files, err := filepath.Glob(filepath.Join(directory, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for client, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var waiting []porcupine.Operation
		for line := range bytes.Lines(text) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				// The rank was killed while it wrote this line. So the call was not made, or its result is unknown.
				break
			}
			var what string
			var at int64
			var in input
			var out output
			if bytes.HasPrefix(line, []byte("call")) {
				_, err = fmt.Sscan(string(line), &what, &at, &in.kind, &in.key, &in.arg)
				waiting = append(waiting, porcupine.Operation{ClientId: client, Input: in, Call: at, Output: output{unknown: true}, Return: math.MaxInt64})
			} else {
				_, err = fmt.Sscan(string(line), &what, &at, &out.unknown, &out.found, &out.wrongKind, &out.value)
				op := waiting[0]
				waiting = waiting[1:]
				if op.Output = out; !out.unknown {
					op.Return = at
				}
				all = appendKnown(all, op)
			}
			require.NoError(t, err, "line %q of %s", line, file)
		}
		for _, op := range waiting {
			all = appendKnown(all, op)
		}
	}
	return all
}

func appendKnown(all []porcupine.Operation, op porcupine.Operation) []porcupine.Operation {
	in, out := op.Input.(input), op.Output.(output)
	if out.unknown && (in.kind == opGet || in.kind == opCount) {
		return all
	}
	return append(all, op)
}
