package job

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/ownfile"
)

// WithStats makes windows count operations on mapped memory, too.
func WithStats() Option { return func(s *Settings) { s.stats = true } }

// Counts tells whether windows count all operations.
func (w *World) Counts() bool { return w.settings.stats || w.settings.statsTo != "" }

// An Account is a row of the table of what a rank has done: how often, and of how many bytes or how long.
type Account struct {
	// Of is what has done it, such as "window 3".
	Of, What string
	Count    uint64
	Bytes    uint64
	Took     time.Duration
}

// Account adds rows to the table that RMA_STATS asks for. Without it it does nothing.
func (w *World) Account(rows ...Account) {
	if w.settings.statsTo == "" {
		return
	}
	w.accountsMu.Lock()
	defer w.accountsMu.Unlock()
	w.accounts = append(w.accounts, rows...)
}

// accounts are the World's own.
func (s *Stats) accounts() []Account {
	rows := []Account{{What: "collective calls", Count: s.Collectives}, {What: "sleeps", Count: s.Sleeps, Took: s.Slept}}
	for _, row := range []Account{
		{What: "messages", Count: s.Messages}, {What: "sends", Count: s.Sends}, {What: "writes", Count: s.Writes},
		{What: "reads", Count: s.Reads}, {What: "atomics", Count: s.Atomics}, {What: "bytes over links", Bytes: s.Bytes},
		{What: "regions kept", Count: uint64(s.Transfers.Kept.Regions), Bytes: uint64(s.Transfers.Kept.Bytes)},
	} {
		if row.Count != 0 || row.Bytes != 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// checkFiles tells whether what is wanted of a rank that uses the network, or not, can be written.
func (s *Settings) checkFiles(network bool) error {
	if err := s.checkTrace(network); err != nil {
		return err
	}
	return s.checkStats()
}

// checkStats tells whether there can be a table, if one is wanted. What is no file, such as a pipe, is left alone: who
// reads it would see an end. openPipe opens a pipe.
func (s *Settings) checkStats() error {
	if s.statsTo == "" || s.statsTo == "-" {
		return nil
	}
	if info, err := os.Lstat(s.statsTo); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeDevice) != 0 {
		return statsError(ownfile.Check(s.statsTo))
	}
	file, err := openStats(s.statsTo)
	if err != nil {
		return statsError(err)
	}
	return file.Close()
}

// openPipe opens the named pipe for the table, nil if that goes to none. Its reader sees no end before all ranks have closed it.
func (s *Settings) openPipe() (*os.File, error) {
	if s.statsTo == "" || s.statsTo == "-" || !ownfile.IsPipe(s.statsTo) {
		return nil, nil
	}
	pipe, err := openStats(s.statsTo)
	return pipe, statsError(err)
}

// holdStats opens the named pipe for the table, if that goes to one.
func (w *World) holdStats() (err error) {
	w.statsPipe, err = w.settings.openPipe()
	return err
}

// dropPipes closes the pipes of ranks that write no table. One that has not been made is nil.
func dropPipes(worlds []*World) {
	for _, w := range worlds {
		if w != nil && w.statsPipe != nil {
			_ = w.statsPipe.Close()
			w.statsPipe = nil
		}
	}
}

func openStats(to string) (*os.File, error) { return ownfile.Open(to, os.O_APPEND|os.O_WRONLY) }

func statsError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ownfile.ErrLink):
		err = fmt.Errorf("%w, or - for standard error", err)
	}
	return fmt.Errorf("%w: RMA_STATS: %w", ErrEnvironment, err)
}

// writeAccounts writes the table, if one is wanted, at once. A reader has the time of writeStats to take it.
func (w *World) writeAccounts(ctx context.Context) error {
	to := w.settings.statsTo
	if to == "" {
		return nil
	}
	s := w.Stats()
	w.Account(s.accounts()...)
	// A window that is closed meanwhile may still tell of itself.
	w.accountsMu.Lock()
	text := table(w.rank, w.size, s.Routes, w.accounts)
	w.accountsMu.Unlock()
	file := w.statsPipe
	w.statsPipe = nil
	var err error
	switch {
	case to == "-":
		_, err = os.Stderr.Write(text)
	case file == nil:
		if file, err = openStats(to); err == nil {
			err = w.writeStats(ctx, file, text)
		}
	default:
		err = w.writeStats(ctx, file, text)
	}
	if err != nil {
		return fmt.Errorf("world: Close: RMA_STATS: %w", err)
	}
	return nil
}

// writeStats writes the table to a file, and closes that. The reader of a pipe that is full has the time of WithStartTimeout, and not
// more than ctx gives.
func (w *World) writeStats(ctx context.Context, file *os.File, text []byte) error {
	// A file whose deadline is over is not written at all. What has room in the pipe is written even if ctx has ended.
	text, err := writeAtOnce(file, text)
	if err == nil && len(text) > 0 {
		err = w.writeInTime(ctx, file, text)
	}
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}

// writeAtOnce writes what a file takes without waiting, and returns the rest.
func writeAtOnce(file *os.File, text []byte) (rest []byte, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return text, err
	}
	var n int
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		n, failed = syscall.Write(int(fd), text)
		for errors.Is(failed, syscall.EINTR) {
			n, failed = syscall.Write(int(fd), text)
		}
		return true
	})
	switch {
	case err != nil:
		return text, err
	case failed == nil:
		return text[n:], nil
	case errors.Is(failed, syscall.EAGAIN):
		return text, nil
	}
	return text, &os.PathError{Op: "write", Path: file.Name(), Err: failed}
}

// writeInTime writes the rest of a table while ctx lasts, and the time of WithStartTimeout.
func (w *World) writeInTime(ctx context.Context, file *os.File, text []byte) error {
	patience := w.settings.patience
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("its reader has not taken the table within %v", patience))
	defer cancel()
	// A regular file has no deadline, and needs none.
	stop := context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err := file.Write(text)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return err
}

func table(rank, size int, routes map[string]int, rows []Account) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "rank %d of %d", rank, size)
	for _, route := range slices.Sorted(maps.Keys(routes)) {
		fmt.Fprintf(&out, ", %d by %s", routes[route], route)
	}
	fmt.Fprintln(&out)
	texts, widths := make([][4]string, len(rows)), [4]int{}
	for i, row := range rows {
		texts[i] = row.texts()
		for column, text := range texts[i] {
			widths[column] = max(widths[column], len(text))
		}
	}
	for _, t := range texts {
		fmt.Fprintf(&out, "  %-*s  %-*s  %*s  %*s\n", widths[0], t[0], widths[1], t[1], widths[2], t[2], widths[3], t[3])
	}
	return out.Bytes()
}

// texts of the columns.
func (a *Account) texts() (t [4]string) {
	t[0], t[1] = cmp.Or(a.Of, "job"), a.What
	if a.Count != 0 || a.Bytes == 0 {
		t[2] = fmt.Sprint(a.Count)
	}
	switch {
	case a.Took != 0:
		t[3] = a.Took.Round(time.Microsecond).String()
	case a.Bytes != 0:
		t[3] = fmt.Sprintf("%d B", a.Bytes)
	}
	return t
}
