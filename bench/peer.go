package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
)

// A peer is an MPI library that is measured beside ours.
type peer struct {
	name     string // the column
	title    string
	packages string // of Debian
	version  string
	compiler string
	runner   string
	// programs are the compiled programs of peers, by name without .c.
	programs map[string]string
}

// knownPeers returns the libraries to look for, with nothing found yet.
func knownPeers() []*peer {
	return []*peer{
		{name: "openmpi", title: "Open MPI", packages: "openmpi-bin libopenmpi-dev", programs: make(map[string]string)},
		{name: "mpich", title: "MPICH", packages: "mpich libmpich-dev", programs: make(map[string]string)},
	}
}

// findPeers returns the peers that are installed, and for each other one how to get it.
func findPeers(ctx context.Context) (found []*peer, missing []string) {
	for _, p := range knownPeers() {
		if err := p.find(ctx); err != nil {
			missing = append(missing, err.Error())
		} else {
			found = append(found, p)
		}
	}
	return found, missing
}

// leftOutPeer says why an installed peer is not measured.
func leftOutPeer(p *peer, err error) string {
	return p.title + " is left out: " + strings.TrimSpace(cli.Cause(err))
}

// find looks for the commands under the names that Debian gives them if several libraries are installed, and then
// under their own.
func (p *peer) find(ctx context.Context) error {
	for _, suffix := range []string{"." + p.name, ""} {
		runner, err := exec.LookPath("mpirun" + suffix)
		if err != nil {
			continue
		}
		compiler, err := exec.LookPath("mpicc" + suffix)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		output, _ := exec.CommandContext(ctx, runner, "--version").Output()
		cancel()
		if name, version := identify(string(output)); name == p.name {
			p.version, p.runner, p.compiler = version, runner, compiler
			return nil
		}
	}
	return fmt.Errorf("%s is not installed; on Debian: apt-get install %s gcc", p.title, p.packages)
}

var (
	openmpiVersion = regexp.MustCompile(`\((?:OpenRTE|Open MPI)\) (\S+)`)
	hydraVersion   = regexp.MustCompile(`Version:\s+(\S+)`)
)

// identify returns the library of an mpirun, from its output for --version.
func identify(output string) (name, version string) {
	if m := openmpiVersion.FindStringSubmatch(output); m != nil {
		return "openmpi", m[1]
	}
	if m := hydraVersion.FindStringSubmatch(output); m != nil && strings.HasPrefix(output, "HYDRA") {
		return "mpich", m[1]
	}
	return "", ""
}

// command returns the command that starts n ranks of a program of this peer, over what device uses.
func (p *peer) command(deviceName, program string, n int, args ...string) []string {
	argv := []string{p.runner}
	if p.name == "openmpi" {
		argv = append(argv, "--bind-to", "none")
		if n > runtime.NumCPU() {
			argv = append(argv, "--oversubscribe")
		}
		if deviceName == device.TCP {
			argv = append(argv, "--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "osc", "pt2pt")
		}
	}
	return append(append(argv, "-n", fmt.Sprint(n), p.programs[program]), args...)
}

// environment returns the environment of the peer's commands, including ours.
func (p *peer) environment(deviceName string) []string {
	env := device.WithoutLauncher(os.Environ())
	if p.name == "openmpi" && os.Geteuid() == 0 {
		env = append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	if p.name == "mpich" && deviceName == device.TCP {
		env = append(env, "MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo")
	}
	return env
}

// over says what the peer's ranks use instead of shared memory.
func (p *peer) over(deviceName string) string {
	if deviceName == device.TCP {
		return " over TCP"
	}
	return ""
}

// arguments returns the peers' program for a job and its arguments.
func (p *peer) arguments(j plan.Job, o *runner.Options) (program string, args []string) {
	program = "mpi_rma"
	args = []string{"-repeat", fmt.Sprint(o.Repeat), "-limit", fmt.Sprint(seconds(o.Timeout))}
	first := j.Cells[0]
	if first.Case.Kind == cases.Alone {
		program = "mpi_job"
	} else if first.Case.Limit != 0 {
		var sizes []string
		for _, one := range j.Cells {
			sizes = append(sizes, fmt.Sprint(one.Size))
		}
		args = append(args, "-size", strings.Join(sizes, ","))
	}
	return program, append(args, first.Case.Name)
}

func seconds(d time.Duration) int { return int(cmp.Or((d+time.Second-1)/time.Second, 1)) }
