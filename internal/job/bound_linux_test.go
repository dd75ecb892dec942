package job

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const boundVariable = "RMA_TEST_BOUND"

// Processes that are bound to the same cores say the same, and others something else.
func TestAllowed(t *testing.T) {
	if to := os.Getenv(boundVariable); to != "" {
		var set unix.CPUSet
		for core := range strings.SplitSeq(to, ",") {
			n, err := strconv.Atoi(core)
			require.NoError(t, err)
			set.Set(n)
		}
		// As a launcher binds a process: its first thread.
		require.NoError(t, unix.SchedSetaffinity(os.Getpid(), &set))
		bound, all := allowed()
		fmt.Printf("said %s of %d\n", bound, all)
		return
	}
	var mine unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &mine))
	if mine.Count() < 2 {
		t.Skip("skipped: there is one core only to bind processes to")
	}
	var cores []string
	for core := 0; len(cores) < 2; core++ {
		if mine.IsSet(core) {
			cores = append(cores, strconv.Itoa(core))
		}
	}
	said := func(bound string) (where string, all int) {
		child := exec.Command(os.Args[0], "-test.run", "^TestAllowed$")
		child.Env = append(os.Environ(), boundVariable+"="+bound)
		output, err := child.CombinedOutput()
		require.NoError(t, err, "%s", output)
		_, err = fmt.Sscanf(string(output), "said %s of %d\n", &where, &all)
		require.NoError(t, err, "%s", output)
		return where, all
	}
	first, all := said(cores[0])
	again, _ := said(cores[0])
	second, _ := said(cores[1])
	both, _ := said(cores[0] + "," + cores[1])
	require.Equal(t, first, again)
	require.NotEqual(t, first, second)
	require.NotEqual(t, first, both)
	require.NotEqual(t, second, both)
	require.GreaterOrEqual(t, all, 2)
}
