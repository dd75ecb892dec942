package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A unit is one command of a part.
type unit struct {
	name        string
	environment []string
	command     []string
	// passes reports whether a run that ended with an error has passed nevertheless. It may be nil.
	passes func(output string) bool
	// cut reports whether a run that ended with an error failed only for lack of time. It may be nil.
	cut func(output string) bool
	// shown is set if the output is of interest even when the unit passes.
	shown bool
	// lacks, if not empty, is the reason why this machine cannot run the unit.
	lacks string
}

// replay returns the command line that repeats a unit.
func (u unit) replay() string {
	words := append([]string(nil), u.environment...)
	for _, word := range u.command {
		if strings.ContainsAny(word, " $^|*'\"") {
			word = "'" + word + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// A part is the subject of one line of the summary.
type part struct {
	name string
	// weight is the part's share of the time, relative to the others.
	weight float64
	// round returns the units of a round. In a part that repeats, each round has other seeds.
	round   func(r round) []unit
	repeats bool
}

// A round is a round of a part, numbered from 0.
type round struct {
	number int
	// slice is the part's time. 0 means no limit.
	slice time.Duration
}

// size returns how much more the tests try than in a plain run. If the time is limited, the first round is a plain
// run with other seeds, because an unfinished run says little. Later rounds try more and more.
func (r round) size() int {
	if r.slice == 0 {
		return largeSize
	}
	return min(1<<min(r.number, 10), largeSize)
}

// A target is a fuzz test.
type target struct{ pkg, name string }

// A project is the part of the module that the plan depends on.
type project struct {
	packages []string
	// tested are the packages that have tests.
	tested  []string
	targets []target
	// noCgo and noVerbs, if not empty, are the reasons why this machine cannot build with cgo, and with libibverbs.
	noCgo, noVerbs string
}

var fuzzTest = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

const (
	noCgo   = "there is no C compiler, or CGO_ENABLED is 0"
	noVerbs = "libibverbs has no header here (Debian: libibverbs-dev)"
)

// hasHeader reports whether cgo's C compiler finds a header, as has_header of .ci/need does.
func hasHeader(ctx context.Context, name string) bool {
	compiler, err := exec.CommandContext(ctx, "go", "env", "CC").Output()
	words := strings.Fields(string(compiler))
	if err != nil || len(words) == 0 {
		return false
	}
	c := exec.CommandContext(ctx, words[0], append(words[1:], "-x", "c", "-fsyntax-only", "-")...)
	c.Stdin = strings.NewReader("#include <" + name + ">\n")
	return c.Run() == nil
}

// inspectC finds what this machine can build of C.
func (p *project) inspectC(ctx context.Context) {
	enabled, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED").Output()
	switch {
	case err != nil || strings.TrimSpace(string(enabled)) != "1" || !hasHeader(ctx, "stdlib.h"):
		p.noCgo, p.noVerbs = noCgo, noCgo
	case !hasHeader(ctx, "infiniband/verbs.h"):
		p.noVerbs = noVerbs
	}
}

// inspect finds the packages and fuzz tests of the module of the current directory, and what this machine lacks.
func inspect(ctx context.Context) (p project, err error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}", "./...").Output()
	if err != nil {
		return p, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(output)) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		p.packages = append(p.packages, name)
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			return p, err
		}
		if len(files) > 0 {
			p.tested = append(p.tested, name)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return p, err
			}
			for _, match := range fuzzTest.FindAllStringSubmatch(string(text), -1) {
				p.targets = append(p.targets, target{name, match[1]})
			}
		}
	}
	p.inspectC(ctx)
	return p, nil
}

const (
	// largeSize is the largest size of a round.
	largeSize = 20
	// apart separates the samples of one round from those of the next. It is a prime number, so that cases which the
	// seed selects in turn differ in each round.
	apart = 1_000_003
	// mostSeed is the largest seed. It leaves room for the seeds that follow it.
	mostSeed = 1 << 62
	// fuzzTime is the time of each fuzz test in a round.
	fuzzTime = "10s"
	// testTimeout ends a package that hangs. It is not meant for slow packages.
	testTimeout = "60m"
)

// speedAgainst begins the name of the part that compares with another revision.
const speedAgainst = "speed against "

// goTest returns a test command for packages that prints as it goes. So a failure counts even if the run is cut
// later.
func goTest(arguments ...string) []string {
	return append([]string{"go", "test", "-v", "-count=1", "-timeout", testTimeout}, arguments...)
}

// plan returns the parts, which depend on the arguments only.
func plan(p project, seed uint64, against string) []part {
	// shuffled returns units in an order that depends on the seed and the round.
	shuffled := func(n int, units []unit) []unit {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		random.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
		return units
	}
	seedOf := func(r round) uint64 { return seed + uint64(r.number)*apart }
	seeded := func(r round) string { return fmt.Sprintf("RMA_TEST_SEED=%d", seedOf(r)) }
	sized := func(r round) []string { return []string{fmt.Sprintf("RMA_TEST_SIZE=%d", r.size()), seeded(r)} }
	return []part{
		{name: "random programs", weight: 3, repeats: true, round: func(r round) []unit {
			return []unit{{name: "internal/oracle", environment: sized(r), command: goTest("./internal/oracle")}}
		}},
		{name: "faults", weight: 2, repeats: true, round: func(r round) []unit {
			return []unit{
				{name: "window", environment: sized(r), command: goTest("-run", "Fault", "./window")},
				{name: "verbs/sim", environment: sized(r), command: goTest("./verbs/sim")},
			}
		}},
		{name: "large samples", weight: 4, repeats: true, round: func(r round) []unit {
			var units []unit
			for _, name := range p.packages {
				units = append(units, unit{name: name, environment: sized(r), command: goTest("-shuffle", strconv.FormatUint(seedOf(r), 10), name)})
			}
			return shuffled(r.number, units)
		}},
		{name: "fuzzing", weight: 3, repeats: true, round: func(r round) []unit {
			var units []unit
			for _, t := range p.targets {
				units = append(units, unit{
					name:    t.pkg + " " + t.name,
					command: []string{"go", "test", "-vet=off", "-run", "^$", "-fuzz", "^" + t.name + "$", "-fuzztime", fuzzTime, "-fuzzminimizetime", "1s", t.pkg},
					passes:  cutShort,
				})
			}
			return shuffled(r.number, units)
		}},
		{name: "race detector", weight: 4, round: func(r round) []unit {
			if p.noCgo != "" {
				return []unit{{name: "all packages", lacks: "the race detector needs cgo: " + p.noCgo}}
			}
			// Only these packages have files for the tag. Without it package ibv has no device.
			units := []unit{{
				name: "libibverbs", environment: []string{seeded(r)}, lacks: p.noVerbs,
				command: goTest("-race", "-tags", "ibverbs", "./verbs/ibv/...", "./internal/nulldev"),
			}}
			for _, name := range p.packages {
				units = append(units, unit{name: name, environment: []string{seeded(r)}, command: goTest("-race", name)})
			}
			return shuffled(r.number, units)
		}},
		{name: "machines that lack something", weight: 4, repeats: true, round: func(r round) []unit {
			return shuffled(r.number, p.machines(seed, r))
		}},
		{name: "benchmark cases", weight: 2, round: func(r round) []unit {
			return []unit{
				{name: "goroutines", command: []string{"go", "run", "./bench", "-device", "local", "-repeat", "1"}},
				{name: "processes", command: []string{"go", "run", "./bench", "-device", "shm", "-repeat", "1"}},
				{name: "processes over TCP", command: []string{"go", "run", "./bench", "-device", "tcp", "-repeat", "1"}},
				{name: "Go's benchmarks", command: []string{"go", "test", "-run", "^$", "-bench", ".", "-benchtime", "1x", "-timeout", testTimeout, "./..."}},
			}
		}},
		{name: "figures of thousands of ranks", weight: 2, round: func(r round) []unit {
			return []unit{{name: "bench scale", command: []string{"bash", ".ci/figures", "check"}}}
		}},
		{name: "papers on an emulated processor", weight: 2, round: func(r round) []unit {
			return []unit{{name: "arm64", command: []string{"bash", ".ci/emulated"}}}
		}},
		{name: "other processors and systems", weight: 2, round: func(r round) []unit {
			return []unit{{name: "riscv64, s390x, macOS", command: []string{"bash", ".ci/foreign"}}}
		}},
		{name: "virtual machine", weight: 4, round: func(r round) []unit {
			return []unit{{name: "the kernel's RDMA driver", environment: []string{"RMA_TEST_SIZE=1", seeded(r)}, command: []string{"verbs/ibv/softroce/softroce", "all"}}}
		}},
		{name: speedAgainst + against, weight: 10, round: func(r round) []unit {
			command := []string{"go", "run", "./bench", "gate", "-against", against}
			if r.slice > 0 {
				// The rest of the time is for building both. A few decided cells say more than many undecided ones.
				minutes := 0.7 * r.slice.Minutes()
				command = append(command, "-minutes", fmt.Sprintf("%.1f", minutes),
					"-some", strconv.Itoa(max(1, int(minutes/gateMinutesOfCell))), "-seed", strconv.FormatUint(seed, 10))
			}
			return []unit{{name: "bench gate", command: command, shown: true, cut: undecided}}
		}},
	}
}

// machineMinutes is enough to test a package on every kind of machine, one of which has no build cache.
const machineMinutes = 1.5

// machines returns a unit for each kind of machine. All tests take several minutes on each. So in a limited time each
// kind has some packages, others in each round and with each seed.
func (p project) machines(seed uint64, r round) (units []unit) {
	kinds := []string{"noroot", "nocgo", "noshm", "onecore", "oneproc", "eightprocs", "race", "spaces", "bare"}
	some := max(1, int(r.slice.Minutes()/machineMinutes))
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(p.tested))
	for k, kind := range kinds {
		u := unit{name: kind, command: []string{".ci/machine", kind}}
		if r.slice > 0 && some < len(order) {
			// Different kinds begin with different packages.
			first := k*len(order)/len(kinds) + r.number*some
			u.command = append(u.command, goTest()[2:]...)
			for i := range some {
				name := p.tested[order[(first+i)%len(order)]]
				u.name, u.command = u.name+" "+name, append(u.command, name)
			}
		}
		units = append(units, u)
	}
	return units
}

// gateMinutesOfCell is enough to decide most cells of the gate beside other work.
const gateMinutesOfCell = 0.7

// undecided reports whether a gate failed only because most of its cells stayed undecided.
func undecided(output string) bool {
	return strings.Contains(output, "bench: gate: nothing can be said:")
}

// cutShort reports whether a fuzz test failed only because its time ended. That happens when the end comes while it
// minimizes an input that does not fail.
func cutShort(output string) bool {
	return strings.Contains(output, "context deadline exceeded") && !regexp.MustCompile(`Failing input|panic|DATA RACE`).MatchString(output)
}
