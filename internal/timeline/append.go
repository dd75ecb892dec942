package timeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/ownfile"
)

// ErrForeign reports that the file exists and is not a timeline.
var ErrForeign = errors.New("is not a timeline that was written by Append; it is left as it is")

// A head is the content of the first line of a file that several processes write.
type head struct {
	OtherData struct {
		// Job identifies the job that writes the file.
		Job string `json:"job"`
		// Origin is the zero of the times in the file.
		Origin time.Time `json:"origin"`
	} `json:"otherData"`
}

const (
	// longestHead is the maximum length of the head in bytes.
	longestHead = 1 << 10
	// longestEvent is how far Append looks back for the last complete event, in bytes.
	longestEvent = 1 << 16
	// patience is how long Append waits for other writers.
	patience, pause = 10 * time.Second, 5 * time.Millisecond
)

// Check returns an error if Append cannot write a file. It creates the file if it does not exist.
func Check(path string) error {
	return with(path, func(file *os.File) error {
		_, _, _, err := readHead(file)
		return err
	})
}

var errPipe = errors.New("is a named pipe, and a timeline is written at any place of a file: name a file")

// with calls do with the file opened for writing.
func with(path string, do func(file *os.File) error) error {
	if ownfile.IsPipe(path) {
		// The pipe is not opened either: its reader would notice that.
		return fmt.Errorf("timeline: %s: %w", path, errPipe)
	}
	file, err := ownfile.Open(path, os.O_RDWR)
	if err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	if err := errors.Join(do(file), file.Close()); err != nil {
		return fmt.Errorf("timeline: %s: %w", path, err)
	}
	return nil
}

// Append adds the output of write to a job's file. Other processes of the job write the same file, one after the other.
// The file is complete after each of them. With a nil write, Append only makes the file.
//
// A new file has mode 0600. A file of another job is replaced. A file that is not a timeline is an ErrForeign. Append
// also returns an error for a symbolic link, a named pipe, a file with another hard link, and a file of another user.
//
// All processes use one time scale. began is when the caller began, by the system's clock. write must write times since
// origin, which is the began of the process that made the file. Viewers drop events with negative times, so write must
// omit or cut what was before origin.
func Append(path, job string, began time.Time, write func(w *Writer, origin time.Time)) error {
	return with(path, func(file *os.File) error {
		if err := lock(file); err != nil {
			return err
		}
		return appendTo(file, job, began, write)
	})
}

func appendTo(file *os.File, job string, began time.Time, write func(w *Writer, origin time.Time)) error {
	h, from, size, err := readHead(file)
	if err != nil {
		return err
	}
	end, some := int64(0), false
	if size > 0 && h.OtherData.Job == job {
		if end, err = whole(file, from, size); err != nil {
			return err
		}
		some = end > from
	} else {
		h.OtherData.Job, h.OtherData.Origin = job, began.Round(0).UTC()
		line, err := h.line()
		if err != nil {
			return err
		}
		if err := file.Truncate(0); err != nil {
			return err
		}
		if _, err := file.WriteAt(line, 0); err != nil {
			return err
		}
		end = int64(len(line))
	}
	w := further(io.NewOffsetWriter(file, end), some)
	if write != nil {
		write(w, h.OtherData.Origin)
	}
	return w.Close()
}

// lock waits until no other process writes the file. Closing the file unlocks it.
func lock(file *os.File) error {
	for begun := time.Now(); ; time.Sleep(pause) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("locking it: %w", err)
		case time.Since(begun) > patience:
			return fmt.Errorf("another process has been writing it for %v", patience)
		}
	}
}

// line returns the head as the first line of the file.
func (h *head) line() ([]byte, error) {
	text, err := json.Marshal(h.OtherData)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(opening+`"otherData":`), text...), ","+events...), nil
}

// readHead reads the head of a file. It returns the offset of what follows the head and the size of the file.
func readHead(file *os.File) (h head, from, size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return h, 0, 0, err
	}
	if size = info.Size(); size == 0 && info.Mode().IsRegular() {
		return h, 0, 0, nil
	}
	text := make([]byte, min(size, longestHead))
	if _, err := file.ReadAt(text, 0); err != nil && err != io.EOF {
		return h, 0, 0, err
	}
	text, _, _ = bytes.Cut(text, []byte("\n"))
	if !bytes.HasPrefix(text, []byte(opening+`"otherData"`)) || json.Unmarshal(append(bytes.Clone(text), "]}"...), &h) != nil {
		return h, 0, 0, ErrForeign
	}
	return h, int64(len(text)), size, nil
}

// whole returns the end of the last complete event after from. A killed process may have left part of one.
func whole(file *os.File, from, size int64) (end int64, err error) {
	tail := make([]byte, min(size-from, longestEvent))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return 0, err
	}
	if bytes.HasSuffix(tail, []byte(closing)) {
		return size - int64(len(closing)), nil
	}
	end = from
	if last := bytes.LastIndex(tail, []byte(",\n")); last >= 0 {
		end = size - int64(len(tail)) + int64(last)
	}
	return end, file.Truncate(end)
}
