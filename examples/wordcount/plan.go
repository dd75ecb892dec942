package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

const (
	// pieceBytes is the size of a piece of a large file. Files of at most two pieces are not cut.
	pieceBytes = 8 << 20
	// A task of small files ends with the file that reaches one of these limits.
	taskBytes = 512 << 10
	taskFiles = 64
)

// A piece is the part of a file whose words one rank counts: the words that begin at offsets from ≤ offset < to.
type piece struct {
	file
	from, to int64
}

func (p piece) whole() bool { return p.from == 0 && p.to == p.size }

// A plan holds the tasks in the order in which they are taken.
type plan struct {
	tasks [][]piece
	// found counts the files that are in no task.
	found totals
}

// bytes returns the number of bytes of all tasks.
func (p *plan) bytes() (sum int64) {
	for _, task := range p.tasks {
		sum += taskSize(task)
	}
	return sum
}

// taskSize returns the number of bytes of a task.
func taskSize(task []piece) (sum int64) {
	for _, p := range task {
		sum += p.to - p.from
	}
	return sum
}

// split makes a plan. The largest files come first, so that no rank begins a long task when the others end. Files
// that would be cut are examined here, so that each is reported or skipped as a whole.
func split(ctx context.Context, files []file, problem func(error)) (*plan, error) {
	p := &plan{}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(b.size, a.size) })
	for len(files) > 0 && files[0].size > 2*pieceBytes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.cut(files[0], problem)
		files = files[1:]
	}
	for len(files) > 0 {
		var task []piece
		for size := int64(0); len(task) < len(files) && len(task) < taskFiles && size < taskBytes; {
			f := files[len(task)]
			task = append(task, piece{f, 0, f.size})
			size += f.size
		}
		p.tasks = append(p.tasks, task)
		files = files[len(task):]
	}
	return p, nil
}

// cut makes tasks of the pieces of a file.
func (p *plan) cut(f file, problem func(error)) {
	beginning, err := sniff(f)
	switch {
	case err != nil:
		p.found.Unreadable++
		problem(err)
		return
	case isBinary(beginning):
		p.found.Binary++
		return
	}
	p.found.Files++
	for from := int64(0); from < f.size; from += pieceBytes {
		p.tasks = append(p.tasks, []piece{{f, from, min(from+pieceBytes, f.size)}})
	}
}

// sniff reads the beginning of a file.
func sniff(f file) ([]byte, error) {
	opened, err := open(f.path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	beginning := make([]byte, sniffBytes)
	n, err := readAt(opened, beginning, 0)
	return beginning[:n], err
}

var errTask = errors.New("the list of files is damaged")

// encodeTask appends a task in its encoding in the window.
func encodeTask(text []byte, task []piece) []byte {
	for _, p := range task {
		for _, n := range []int64{p.size, p.from, p.to, int64(len(p.path))} {
			text = binary.AppendUvarint(text, uint64(n))
		}
		text = append(text, p.path...)
	}
	return text
}

func decodeTask(text []byte) (task []piece, err error) {
	for len(text) > 0 {
		var n [4]int64
		for i := range n {
			value, size := binary.Uvarint(text)
			if size <= 0 {
				return nil, fmt.Errorf("%w: %d bytes are not a number", errTask, len(text))
			}
			n[i], text = int64(value), text[size:]
		}
		if n[3] < 0 || n[3] > int64(len(text)) {
			return nil, fmt.Errorf("%w: a path of %d bytes in %d", errTask, n[3], len(text))
		}
		task = append(task, piece{file{string(text[:n[3]]), n[0]}, n[1], n[2]})
		text = text[n[3]:]
	}
	return task, nil
}
