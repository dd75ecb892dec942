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

// What a rank wrote before it failed is shown again where it is not to be seen any more:
// after much that others wrote, or on a full disk.
func TestLastLines(t *testing.T) {
	const again = "rmarun: the last lines of rank 1:\n    about to end\n"
	const most = 25
	for _, lines := range []int{0, most - 1, most} {
		// What rank 1 wrote last may be read after what rank 0 writes when it is ended for that: then it is to be seen.
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

// The rank that failed first is the one that rmarun has heard of first, also if something
// that it left behind might still write: rmarun does not wait for that before it ends the others.
func TestFirstFailure(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	_, stderr, exit := runJob(t, "linger "+fifo, "-n", "2", "SELF")
	require.Equal(t, 3, exit, "%s", stderr)
	require.Contains(t, stderr, "rmarun: rank 1 failed: exit status 3\n")
}

// A rank that fails for want of another is not named, even if it ends before that. The other has time to say why, and the
// status of the job is its.
func TestFollowers(t *testing.T) {
	for how, want := range map[string]struct {
		status []int
		says   []string
	}{
		"fails": {[]int{3}, []string{"rank 0 failed: exit status 3\n", "2 further ranks failed because another had failed\n"}},
		"left":  {[]int{3}, []string{"rank 0 failed: exit status 3\n", "2 further ranks failed because another had failed\n"}},
		// Where all blame each other the status is that of the one whose end rmarun finds first.
		"blames": {[]int{3, 4}, []string{"rank 0 failed: exit status 3\n", "rank 1 failed: exit status 4\n", "rank 2 failed: exit status 4\n"}},
	} {
		t.Run(how, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			require.NoError(t, syscall.Mkfifo(fifo, 0o600))
			c := rmarun(t, "follow "+how+" "+fifo, "-n", "3", "SELF")
			c.Env = append(c.Env, tellVariable+"="+forever)
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

// A rank that cannot join a job fails by itself, and the others for want of it, whichever ends first.
func TestFollowersOfADecliner(t *testing.T) {
	c := rmarun(t, "decline", "-n", "4", "SELF")
	c.Env = append(c.Env, tellVariable+"="+forever)
	_, stderr, exit := runCommand(t, c)
	require.Equal(t, 7, exit, "%s", stderr)
	require.Equal(t, "rmarun: rank 1 failed: exit status 7\nrmarun: 3 further ranks failed because another had failed\n", stderr)
}

// A rank that rmarun has ended is no reason for another to fail, whoever blames it.
func TestFollowersOfTheEnded(t *testing.T) {
	j := &job{blames: make([]atomic.Pointer[blame], 3)}
	for number := range 3 {
		j.ranks = append(j.ranks, &rank{number: number, status: 4 << 8, asked: number == 0})
	}
	j.failed = []*rank{j.ranks[2], j.ranks[1], j.ranks[0]}
	j.blame(1, 0, false)
	j.blame(2, 1, false)
	require.Equal(t, 1, j.first().number)
	require.True(t, j.follows(j.ranks[2]))
	require.False(t, j.follows(j.ranks[1]))
}

// A job that a rank aborts has failed, with its status as far as a shell sees that.
func TestAbort(t *testing.T) {
	for status, want := range map[string]int{"42": 42, "0": 1, "256": 1, "300": 44, "-1": 255} {
		ranks := "1"
		if want == 42 {
			ranks = "2" // abort it at one time
		}
		_, stderr, exit := runJob(t, "abort "+status, "-n", ranks, "SELF")
		require.Equal(t, want, exit, "%s: %s", status, stderr)
		require.Contains(t, stderr, "aborted the job with status "+status+"\n")
	}
}

// An abort ends the job at once, also one that goes on when a rank fails: no rank has yet to say why it fails.
func TestAbortAtOnce(t *testing.T) {
	for _, flags := range []string{"", "-keep-going"} {
		c := rmarun(t, "abandoned 42", append(strings.Fields("-n 3 "+flags), "SELF")...)
		c.Env = append(c.Env, tellVariable+"="+forever)
		_, stderr, exit := runCommand(t, c)
		require.Equal(t, 42, exit, "%s", stderr)
		require.Equal(t, "rmarun: rank 1 aborted the job with status 42\n", stderr)
	}
}

// A rank that blames another and goes on without it fails by itself later, and is named. So is one that blames another in an
// earlier job of the same ranks. One that blames it again, or blames first one that left in order, is not.
func TestBlameTakenBack(t *testing.T) {
	const named, followed = "rmarun: rank 0 failed: exit status 7\n", "rmarun: 1 further rank failed because another had failed\n"
	for how, want := range map[string]string{"recovers": named, "begins again": named, "blames again": followed, "blames on": followed} {
		_, stderr, exit := runJob(t, "recover "+how, "-n", "3", "-keep-going", "SELF")
		require.Equal(t, 7, exit, "%s", stderr)
		require.ElementsMatch(t, []string{"rmarun: rank 1 failed: exit status 7\n", want}, slices.Collect(strings.Lines(stderr)), how)
	}
}

// One is no plural, and further are those besides others.
func TestFurtherRanks(t *testing.T) {
	require.Equal(t, "1 rank was ended", ended(1, false))
	require.Equal(t, "3 ranks were ended", ended(3, false))
	for ranks, want := range map[string]string{"2": "1 further rank was ended", "3": "2 further ranks were ended"} {
		_, stderr, exit := runJob(t, "stubborn", "-n", ranks, "-grace", "10ms", "SELF")
		require.Equal(t, 4, exit)
		require.Contains(t, stderr, "rmarun: "+want+"\n")
	}
}
