package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/onesided/rma/internal/tty"
)

// pause is the time between lines of progress if w is not shown on a terminal.
const pause = 30 * time.Second

// Progress returns a function that shows a line on w, and one that ends it. On a terminal each line replaces the last
// one. Elsewhere most lines are left out.
func Progress(w io.Writer) (show func(string), done func()) {
	if terminal(w) {
		return func(line string) { fmt.Fprintf(w, "\r\x1b[K%s", line) }, func() { fmt.Fprint(w, "\r\x1b[K") }
	}
	last := time.Now()
	return func(line string) {
		if time.Since(last) >= pause {
			last = time.Now()
			fmt.Fprintf(w, "bench: %s\n", line)
		}
	}, func() {}
}

func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && tty.Shows(file)
}
