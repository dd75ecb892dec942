package world

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A reader that takes nothing does not hold up the end of a rank for ever.
func TestTableToReaderThatStops(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	w := quiet(t)[0]
	w.settings.patience = time.Millisecond // expires
	require.ErrorContains(t, w.writeStats(writer, make([]byte, 1<<20)), "its reader has taken nothing for 1ms")
}

// A window that is closed while its World is may tell of itself while the table is written.
func TestAccountWhileWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats")
	w := quiet(t)[0]
	w.settings.statsTo = file
	var telling sync.WaitGroup
	telling.Go(func() {
		for range 100 {
			w.Account(Account{What: "told", Count: 1})
		}
	})
	require.NoError(t, w.writeAccounts())
	telling.Wait()
	require.NoError(t, w.writeAccounts())
	w.settings.statsTo = ""
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, last, _ := strings.Cut(string(text[1:]), "rank 0 of 2")
	require.Equal(t, 100, strings.Count(last, "told"), "%s", last)
}
