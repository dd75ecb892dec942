package world

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

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
