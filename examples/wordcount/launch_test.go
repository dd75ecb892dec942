package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/internal/testsize"
)

// launchedRanks is the number of ranks that launchers start.
const launchedRanks = 4

// A starter makes a command that starts launchedRanks ranks of a program, with the given variables added to the
// environment of all. Any user may run the program and read the files in its arguments.
type starter func(t *testing.T, environment []string, program ...string) *exec.Cmd

func byRmarun(t *testing.T, environment []string, program ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), launchtest.Limit)
	t.Cleanup(cancel)
	arguments := append([]string{"-n", strconv.Itoa(launchedRanks)}, program...)
	command := exec.CommandContext(ctx, launchtest.Build(t, "./cmd/rmarun"), arguments...)
	command.Env = append(os.Environ(), environment...)
	return command
}

func byHydra(t *testing.T, environment []string, program ...string) *exec.Cmd {
	return launchtest.Hydra(t, launchedRanks, environment, program...)
}

// bySlurm starts ranks on the two nodes of a cluster.
func bySlurm(t *testing.T, environment []string, program ...string) *exec.Cmd {
	arguments := []string{"--mpi=pmi2", "-K", "-N", "2", "-n", strconv.Itoa(launchedRanks), "--ntasks-per-node", strconv.Itoa(launchedRanks / 2)}
	command := launchtest.SharedSlurm(t, 2).Command(t.Context(), append(arguments, program...)...)
	command.Env = append(command.Env, environment...)
	return command
}

// byHand starts processes as a shell would on each host, without any manager.
func byHand(t *testing.T, environment []string, program ...string) *exec.Cmd {
	const script = `
for rank in $(seq $RMA_SIZE); do RMA_RANK=$((RMA_SIZE - rank)) "$0" "$@" & ranks="$ranks $!"; done
for rank in $ranks; do wait $rank || failed=1; done
exit $failed`
	ctx, cancel := context.WithTimeout(t.Context(), launchtest.Limit)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, "sh", append([]string{"-c", script}, program...)...)
	command.Env = append(withoutManager(), "RMA_ROOT="+launchtest.RootAddress(), "RMA_SIZE="+strconv.Itoa(launchedRanks), "RMA_KEY_FILE="+launchtest.KeyFile(t))
	command.Env = append(command.Env, environment...)
	// The shell and its ranks are one process group, which is killed as a whole.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command
}

// withoutManager returns the test's environment without the variables of a process manager.
func withoutManager() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "PMI_") })
}

// A placement is the device and the hosts that the environment gives to ranks.
type placement struct {
	name, device string
	// each is the assignment that a shell makes before each rank, for values that differ between ranks.
	each string
	// on returns the host that each gives to a rank.
	on func(rank int) int
}

func together(int) int      { return 0 }
func alternating(r int) int { return r % 2 }
func halves(r int) int      { return r / (launchedRanks / 2) }

var (
	overTCP    = placement{name: "tcp", device: "tcp", on: together}
	oneHost    = placement{name: "one host", on: together}
	twoHosts   = placement{name: "two hosts", each: "RMA_HOST=host$((${PMI_RANK:-$RMA_RANK} % 2))", on: alternating}
	slurmNodes = placement{name: "a host for each node", each: "RMA_HOST=$SLURM_NODEID", on: halves}
)

// environment returns the variables of all ranks. They override what the test has inherited.
func (p placement) environment() []string {
	return []string{"RMA_DEVICE=" + p.device, "RMA_HOST=", "RMA_ADDRESS="}
}

// program adds the shell to a program's command line, if there is one.
func (p placement) program(program ...string) []string {
	if p.each == "" {
		return program
	}
	return append([]string{"sh", "-c", p.each + ` exec "$0" "$@"`}, program...)
}

// routes returns the line that a rank must print about its routes.
func (p placement) routes(rank int) string {
	var to []string
	for other := range launchedRanks {
		switch {
		case other == rank:
			to = append(to, "self")
		case p.device == "tcp" || p.on(other) != p.on(rank):
			to = append(to, "tcp")
		default:
			to = append(to, "shm, mapped")
		}
	}
	return sayRoutes(rank, to)
}

// routesWords marks the lines in which ranks print their routes.
const routesWords = " reaches the others by: "

func sayRoutes(rank int, to []string) string {
	return fmt.Sprintf("rank %d"+routesWords+"%s", rank, strings.Join(to, "; "))
}

// outputs runs a command that must succeed, and returns what its ranks print to standard output and standard error.
func outputs(t *testing.T, command *exec.Cmd) (out, errout string) {
	t.Helper()
	var to, errto bytes.Buffer
	command.Stdout, command.Stderr = &to, &errto
	require.NoError(t, command.Run(), "%s%s", to.Bytes(), errto.Bytes())
	return to.String(), errto.String()
}

// publicTree makes a directory of text that every user may read.
func publicTree(t *testing.T, files int) string {
	t.Helper()
	top := launchtest.Directory(t)
	for name, text := range randomFiles(files, testsize.Random(t, 17)) {
		path := filepath.Join(top, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return top
}

// countedAlone returns what one process prints.
func countedAlone(t *testing.T, program, top string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "-verify", top).Output()
	require.NoError(t, err)
	contains(t, string(out), "λόγος", "verified: ")
	return string(out)
}

// counts makes a launcher start the job in one of the placements, selected by turn, or in more in a larger run. The job
// must print the counts of one process and verify them, and its ranks must have the expected routes. The ranks are this
// binary, which prints its routes. In one placement, or more, the program itself runs as well.
func counts(t *testing.T, turn int, start starter, placements ...placement) {
	t.Helper()
	program, self, top := launchtest.Build(t, "./examples/wordcount"), launchtest.Self(t), publicTree(t, 30)
	alone := countedAlone(t, program, top)
	for _, i := range testsize.Turns(turn, len(placements), 1) {
		p := placements[i]
		t.Run(p.name, func(t *testing.T) {
			var want []string
			for rank := range launchedRanks {
				want = append(want, p.routes(rank))
			}
			counted, said := outputs(t, start(t, append(p.environment(), as(wholeRole)...), p.program(self, "-verify", top)...))
			require.Equal(t, alone, counted)
			got := slices.DeleteFunc(strings.Split(said, "\n"), func(line string) bool { return !strings.Contains(line, routesWords) })
			slices.Sort(got)
			require.Equal(t, want, got)
			if !testsize.Turn(i-turn+len(placements), len(placements)) {
				return
			}
			counted, _ = outputs(t, start(t, p.environment(), p.program(program, "-verify", top)...))
			require.Equal(t, alone, counted)
		})
	}
}

func TestUnderRmarun(t *testing.T) {
	t.Parallel()
	counts(t, 0, byRmarun, overTCP, oneHost, twoHosts)
}

func TestUnderHydra(t *testing.T) {
	t.Parallel()
	counts(t, 1, byHydra, overTCP, oneHost, twoHosts)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	counts(t, 2, byHand, overTCP, oneHost, twoHosts)
}

func TestUnderSlurm(t *testing.T) {
	t.Parallel()
	counts(t, 2, bySlurm, overTCP, oneHost, slurmNodes)
}

// A rank is killed while all ranks write to all. If the launcher lets the other ranks live, they name the dead rank and
// continue without it, and the launcher reports a failure. A plain run has one placement for each launcher.
func TestKilledUnderLaunchers(t *testing.T) {
	for turn, c := range []struct {
		name  string
		start starter
		// spare makes the launcher let the other ranks live. Hydra cannot.
		spare      []string
		placements []placement
	}{
		{"rmarun", byRmarun, []string{"-keep-going"}, []placement{overTCP, twoHosts}},
		{"hydra", byHydra, nil, []placement{overTCP, twoHosts}},
		{"slurm", bySlurm, []string{"--kill-on-bad-exit=0"}, []placement{overTCP, slurmNodes}},
	} {
		for _, i := range testsize.Turns(turn, len(c.placements), 1) {
			p := c.placements[i]
			t.Run(c.name+", "+p.name, func(t *testing.T) {
				t.Parallel()
				const killed = 1
				program := slices.Concat(c.spare, p.program(launchtest.Self(t), never.String(), "1", strconv.Itoa(killed)))
				command := c.start(t, append(p.environment(), as(hammerRole)...), program...)
				said, err := command.CombinedOutput()
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit, "%s", said)
				if c.spare == nil {
					return
				}
				require.Equal(t, launchedRanks-1, strings.Count(string(said), fmt.Sprintf(lostFormat, killed)), "%s", said)
				require.Equal(t, launchedRanks-1, strings.Count(string(said), goesOnLine), "%s", said)
			})
		}
	}
}

// refuses makes a launcher start a job whose ranks cannot join. The job must fail without counting anything. refuses
// returns what ranks and launcher print.
func refuses(t *testing.T, start starter, environment []string, each string) string {
	t.Helper()
	program, top := launchtest.Build(t, "./examples/wordcount"), publicTree(t, 1)
	p := placement{each: each}
	command := start(t, append(p.environment(), environment...), p.program(program, top)...)
	var out, errout bytes.Buffer
	command.Stdout, command.Stderr = &out, &errout
	var exit *exec.ExitError
	require.ErrorAs(t, command.Run(), &exit)
	// A total is a number of words. The launcher may print lines of its own.
	require.NotContains(t, out.String(), "words\n")
	return errout.String()
}

// A device or an address that does not exist is an error, even if others exist. Hydra kills all ranks as soon as one
// ends without finalizing, perhaps before they have printed the reason. So the output under Hydra is not checked, and a
// plain run has one case there.
func TestUnusable(t *testing.T) {
	cases := []struct {
		name        string
		environment []string
		each        string
		want        []string
	}{
		{"no such device", []string{"RMA_DEVICE=nonsense"}, "", []string{`device "nonsense" (RMA_DEVICE, or WithDevice), allowed are shm, tcp, ibv, or none for the best`}},
		{"shared memory across hosts", []string{"RMA_DEVICE=shm"}, twoHosts.each, []string{"shm", "reach rank ", "RMA_DEVICE allows shared memory only"}},
		{"another device in each rank", nil, "RMA_DEVICE=$([ $PMI_RANK = 0 ] && echo shm || echo tcp)", []string{"has RMA_DEVICE=", "this rank RMA_DEVICE="}},
		{"no such address", []string{"RMA_DEVICE=tcp", "RMA_ADDRESS=192.0.2.1"}, "", []string{"192.0.2.1"}},
		{"no interface in a range", []string{"RMA_DEVICE=tcp", "RMA_ADDRESS=198.51.100.0/24"}, "", []string{"198.51.100.0/24"}},
	}
	for i, c := range cases {
		t.Run(c.name+", rmarun", func(t *testing.T) {
			t.Parallel()
			contains(t, refuses(t, byRmarun, c.environment, c.each), c.want...)
		})
		if !testsize.Turn(i, len(cases)) {
			continue
		}
		t.Run(c.name+", hydra", func(t *testing.T) {
			t.Parallel()
			refuses(t, byHydra, c.environment, c.each)
		})
	}
}

// A process that no launcher started gets an error, too.
func TestUnusableAlone(t *testing.T) {
	program, top := launchtest.Build(t, "./examples/wordcount"), publicTree(t, 1)
	command := exec.CommandContext(t.Context(), program, top)
	command.Env = append(os.Environ(), "RMA_DEVICE=nonsense")
	out, err := command.CombinedOutput()
	require.Error(t, err)
	contains(t, string(out), `wordcount: world: Init: invalid environment: device "nonsense" (RMA_DEVICE, or WithDevice)`)
}
