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

// ErrForeign: a file that is to be written is there already, and is no timeline.
var ErrForeign = errors.New("is not a timeline that was written by Append; it is left as it is")

// A head is what the first line of a file that several processes write says.
type head struct {
	OtherData struct {
		// Job is whose file it is.
		Job string `json:"job"`
		// Origin is what the times in the file count from.
		Origin time.Time `json:"origin"`
	} `json:"otherData"`
}

const (
	// longestHead is in bytes.
	longestHead = 1 << 10
	// longestEvent is how far Append looks back for the last event that is whole.
	longestEvent = 1 << 16
	// patience is how long Append waits for others that write.
	patience, pause = 10 * time.Second, 5 * time.Millisecond
)

// Check tells whether Append can write a file, which it makes if it is not there.
func Check(path string) error {
	return with(path, func(file *os.File) error {
		_, _, _, err := readHead(file)
		return err
	})
}

var errPipe = errors.New("is a named pipe, and a timeline is written at any place of a file: name a file")

// with opens a file that is to be written.
func with(path string, do func(file *os.File) error) error {
	if ownfile.IsPipe(path) {
		// It is not opened either: its reader would see that.
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

// Append adds what write writes to the file of a job, which other processes of the same job
// write too, each in its turn: the file is whole after each of them. It is made if it is not
// there, for this user alone (mode 0600), and made anew if it is another job's; what is no timeline is refused with
// ErrForeign. A symbolic link, a named pipe, a file that has another name and a file of another user are refused, too. A nil write only
// makes the file.
//
// The processes have one time scale: began is a time of the system's clock at which that of
// the caller began, and write has to give times since origin, which is began of the process that made the file. Viewers drop
// events of negative times, so what was before origin has to be left out or cut.
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

// lock waits until nobody else writes the file, which closing it ends.
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

// line is the head as the file begins with it.
func (h *head) line() ([]byte, error) {
	text, err := json.Marshal(h.OtherData)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(opening+`"otherData":`), text...), ","+events...), nil
}

// readHead reads the head of a file, and tells where what follows it begins, and how long
// the file is.
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

// whole tells where the last event ends that is whole, of those that begin behind from: one
// who was killed may have left a part of one.
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
