package peers

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

// A Peer is an MPI library that is measured beside ours.
type Peer struct {
	Name     string // the column
	Title    string
	packages string // of Debian
	Version  string
	Compiler string
	Runner   string
	// Programs are the compiled programs of peers, by name without .c.
	Programs map[string]string
}

// Known returns the libraries to look for, with nothing found yet.
func Known() []*Peer {
	return []*Peer{
		{Name: "openmpi", Title: "Open MPI", packages: "openmpi-bin libopenmpi-dev", Programs: make(map[string]string)},
		{Name: "mpich", Title: "MPICH", packages: "mpich libmpich-dev", Programs: make(map[string]string)},
	}
}

// Find returns the peers that are installed, and for each other one how to get it.
func Find(ctx context.Context) (found []*Peer, missing []string) {
	for _, p := range Known() {
		if err := p.find(ctx); err != nil {
			missing = append(missing, err.Error())
		} else {
			found = append(found, p)
		}
	}
	return found, missing
}

// LeftOut says why an installed peer is not measured.
func LeftOut(p *Peer, err error) string {
	return p.Title + " is left out: " + strings.TrimSpace(cli.Cause(err))
}

// find looks for the commands under the names that Debian gives them if several libraries are installed, and then
// under their own.
func (p *Peer) find(ctx context.Context) error {
	for _, suffix := range []string{"." + p.Name, ""} {
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
		if name, version := identify(string(output)); name == p.Name {
			p.Version, p.Runner, p.Compiler = version, runner, compiler
			return nil
		}
	}
	return fmt.Errorf("%s is not installed; on Debian: apt-get install %s gcc", p.Title, p.packages)
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

// Command returns the command that starts n ranks of a program of this peer, over what device uses.
func (p *Peer) Command(deviceName, program string, n int, args ...string) []string {
	argv := []string{p.Runner}
	if p.Name == "openmpi" {
		argv = append(argv, "--bind-to", "none")
		if n > runtime.NumCPU() {
			argv = append(argv, "--oversubscribe")
		}
		if deviceName == device.TCP {
			argv = append(argv, "--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "osc", "pt2pt")
		}
	}
	return append(append(argv, "-n", fmt.Sprint(n), p.Programs[program]), args...)
}

// Environment returns the environment of the peer's commands, including ours.
func (p *Peer) Environment(deviceName string) []string {
	env := device.WithoutLauncher(os.Environ())
	if p.Name == "openmpi" && os.Geteuid() == 0 {
		env = append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	if p.Name == "mpich" && deviceName == device.TCP {
		env = append(env, "MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo")
	}
	return env
}

// Over says what the peer's ranks use instead of shared memory.
func (p *Peer) Over(deviceName string) string {
	if deviceName == device.TCP {
		return " over TCP"
	}
	return ""
}

// arguments returns the peers' program for a job and its arguments.
func (p *Peer) arguments(j plan.Job, o *runner.Options) (program string, args []string) {
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
