package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The last lines of a failed rank are repeated if they may be out of sight, or could not be written: after many lines
// of other ranks, or on a full disk.
func TestLastLines(t *testing.T) {
	const again = "rmarun: the last lines of rank 1:\n    about to end\n"
	const most = 25
	for _, lines := range []int{0, most - 1, most} {
		// Rmarun may read the last lines of rank 1 after those that rank 0 writes when it is ended. Then they are in
		// sight, and the test tries again.
		for behind, tries := -1, 0; behind != lines; tries++ {
			require.Less(t, tries, 100, "what rank 1 wrote last never comes after others")
			stdout, stderr, exit := runJob(t, fmt.Sprint("bury ", lines), "-n", "3", "SELF")
			require.Equal(t, 3, exit)
			_, below, found := strings.Cut(stdout, "about to end\n")
			require.True(t, found && !strings.Contains(below, "about to end"), stdout)
			require.Contains(t, stderr, "rmarun: rank 1 failed: exit status 3\n")
			behind = strings.Count(below, "\n")
			require.LessOrEqual(t, behind, lines)
			require.Equal(t, behind == most, strings.Contains(stderr, again), "%d of %d: %s", behind, lines, stderr)
			require.Equal(t, behind == most, strings.Contains(stderr, "last lines"), "%d of %d: %s", behind, lines, stderr)
		}
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("skipped: there is no device that is always full: %v", err)
	}
	defer full.Close()
	c := rmarun(t, "bury 0", "-n", "3", "SELF")
	var stderr bytes.Buffer
	c.Stdout, c.Stderr = full, &stderr
	require.Equal(t, 3, status(t, c.Run()))
	require.Contains(t, stderr.String(), again)
}

// The first failure is the one that rmarun notices first. Rmarun does not wait for output that a failed rank's child
// might still write before it ends the other ranks.
func TestFirstFailure(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	_, stderr, exit := runJob(t, "linger "+fifo, "-n", "2", "SELF")
	require.Equal(t, 3, exit, "%s", stderr)
	require.Contains(t, stderr, "rmarun: rank 1 failed: exit status 3\n")
}

// A rank that fails because of another is not named, even if it ends first. The other rank has time to report the
// reason, and determines the status of the job.
func TestFollowers(t *testing.T) {
	for how, want := range map[string]struct {
		status []int
		says   []string
	}{
		"fails": {[]int{3}, []string{"rank 0 failed: exit status 3\n", "2 further ranks failed because another had failed\n"}},
		"left":  {[]int{3}, []string{"rank 0 failed: exit status 3\n", "2 further ranks failed because another had failed\n"}},
		// If all ranks blame each other, the status is that of the rank whose end rmarun notices first.
		"blames": {[]int{3, 4}, []string{"rank 0 failed: exit status 3\n", "rank 1 failed: exit status 4\n", "rank 2 failed: exit status 4\n"}},
	} {
		t.Run(how, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			require.NoError(t, syscall.Mkfifo(fifo, 0o600))
			c := rmarun(t, "follow "+how+" "+fifo, "-n", "3", "SELF")
			c.Env = append(c.Env, reportVariable+"="+forever)
			stdout, stderr, exit := runCommand(t, c)
			require.Equal(t, "the reason\n", stdout)
			require.Contains(t, want.status, exit, "%s", stderr)
			told := ""
			for _, says := range want.says {
				told += "rmarun: " + says
			}
			lines := slices.Sorted(strings.Lines(stderr))
			require.Equal(t, slices.Sorted(strings.Lines(told)), lines)
		})
	}
}

// A rank that cannot join a job fails by itself. The other ranks fail because of it, whichever ends first.
func TestFollowersOfADecliner(t *testing.T) {
	c := rmarun(t, "decline", "-n", "4", "SELF")
	c.Env = append(c.Env, reportVariable+"="+forever)
	_, stderr, exit := runCommand(t, c)
	require.Equal(t, 7, exit, "%s", stderr)
	require.Equal(t, "rmarun: rank 1 failed: exit status 7\nrmarun: 3 further ranks failed because another had failed\n", stderr)
}

// A rank that rmarun has ended is not the reason for another rank's failure, even if it is blamed.
func TestFollowersOfTheEnded(t *testing.T) {
	j := &job{blames: make([]atomic.Pointer[blame], 3)}
	for number := range 3 {
		j.ranks = append(j.ranks, &rank{number: number, status: 4 << 8, terminated: number == 0})
	}
	j.failed = []*rank{j.ranks[2], j.ranks[1], j.ranks[0]}
	j.blame(1, 0, false)
	j.blame(2, 1, false)
	require.Equal(t, 1, j.first().number)
	require.True(t, j.follows(j.ranks[2]))
	require.False(t, j.follows(j.ranks[1]))
}

// A job that a rank aborts fails with the status of the abort, as far as a shell can report it.
func TestAbort(t *testing.T) {
	for status, want := range map[string]int{"42": 42, "0": 1, "256": 1, "300": 44, "-1": 255} {
		ranks := "1"
		if want == 42 {
			ranks = "2" // both ranks abort the job at once
		}
		_, stderr, exit := runJob(t, "abort "+status, "-n", ranks, "SELF")
		require.Equal(t, want, exit, "%s: %s", status, stderr)
		require.Contains(t, stderr, "aborted the job with status "+status+"\n")
	}
}

// An abort ends the job at once, even with -keep-going. Rmarun does not wait for ranks to report a reason.
func TestAbortAtOnce(t *testing.T) {
	for _, flags := range []string{"", "-keep-going"} {
		c := rmarun(t, "abandoned 42", append(strings.Fields("-n 3 "+flags), "SELF")...)
		c.Env = append(c.Env, reportVariable+"="+forever)
		_, stderr, exit := runCommand(t, c)
		require.Equal(t, 42, exit, "%s", stderr)
		require.Equal(t, "rmarun: rank 1 aborted the job with status 42\n", stderr)
	}
}

// A rank that blames another and then continues without it is named if it fails later. So is a rank that blamed another
// in an earlier job. A rank that blames the failed rank again is not named, nor is one that first blamed a rank which
// left without failing.
func TestBlameTakenBack(t *testing.T) {
	const named, followed = "rmarun: rank 0 failed: exit status 7\n", "rmarun: 1 further rank failed because another had failed\n"
	for how, want := range map[string]string{"recovers": named, "begins again": named, "blames again": followed, "blames on": followed} {
		_, stderr, exit := runJob(t, "recover "+how, "-n", "3", "-keep-going", "SELF")
		require.Equal(t, 7, exit, "%s", stderr)
		require.ElementsMatch(t, []string{"rmarun: rank 1 failed: exit status 7\n", want}, slices.Collect(strings.Lines(stderr)), how)
	}
}

// The summary has the right number of nouns, and says "further" if other ranks are named.
func TestFurtherRanks(t *testing.T) {
	require.Equal(t, "1 rank was ended", ended(1, false))
	require.Equal(t, "3 ranks were ended", ended(3, false))
	for ranks, want := range map[string]string{"2": "1 further rank was ended", "3": "2 further ranks were ended"} {
		_, stderr, exit := runJob(t, "stubborn", "-n", ranks, "-grace", "10ms", "SELF")
		require.Equal(t, 4, exit)
		require.Contains(t, stderr, "rmarun: "+want+"\n")
	}
}
