package verbstest

import (
	"fmt"
	"hash/fnv"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// Config describes how the suite opens devices and what it runs.
type Config struct {
	// Open opens a device. All devices that it opens during one Run can connect to each other. The suite closes them.
	Open func(t testing.TB) verbs.Device

	// Peer, if it is not nil, returns the command of a process, such as [Self], that calls [ServePeer] with its
	// standard input and output. Its devices and those of Open can connect to each other. The far side of every case is
	// then in such a process. Some cases kill it.
	Peer func(t testing.TB) *exec.Cmd

	// Kill, if it is not nil, ends a device of Open as the end of its process would, without notice to its peers.
	// Otherwise the suite closes the devices of this process that are to die.
	Kill func(device verbs.Device)

	// Driven says that a device serves its peers only while its completion queues are polled. A goroutine then polls
	// the queues of every device of a case, for no completions, and sleeps on the device's channel in between.
	Driven bool

	// Allocates, if it is not empty, says why moving messages through the device allocates. The cases that check for
	// allocations are then skipped.
	Allocates string

	// Sleep, if it is not nil, replaces device.Channel().Sleep in the suite. One goroutine plays all ranks of most
	// cases, so a device in virtual time cannot see that all of them wait. Sleep shows it, and may move the clock to
	// the next event, or by limit if there is none. In a case with several goroutines, each calls Sleep for itself.
	Sleep func(device verbs.Device, ticket uint32, limit time.Duration)

	// Limit bounds how long a case waits for one event before it fails. Zero means two minutes. Limit exists to end a
	// hang, and a slow machine must not exceed it.
	Limit time.Duration

	// Variant, if it is not nil, says that another Run tests the same device, and that the devices here differ from it
	// in a part. It names the groups of cases that the difference can affect, such as "Connections", "Transfer". They
	// run whole. Of the cases of the other groups, Run takes a fifth if RMA_TEST_SIZE is 1, and all from a size of 5
	// on. RMA_TEST_SEED and the test's name choose them. Below that size Run also calls t.Parallel, and skips cases
	// that count allocations. If Variant is nil, Run takes all cases, or every other one, chosen in the same way, if
	// the size is below 1.
	Variant []string

	// link connects to a new peer. It is nil if peers are in this process.
	link func(t testing.TB) (*link, error)
}

// Run runs the suite as subtests of t.
func Run(t *testing.T, config Config) {
	if config.Limit == 0 {
		config.Limit = await.Limit
	}
	if config.Peer != nil {
		config.link = func(t testing.TB) (*link, error) { return process(config.Peer(t)) }
	}
	if config.Variant != nil && testsize.N(1) < variantShare {
		t.Parallel()
		if config.Allocates == "" {
			config.Allocates = "other tests run beside this variant; from RMA_TEST_SIZE=5 it runs alone"
		}
	}
	children := &children{config: config}
	t.Cleanup(func() { children.end(t) })
	for _, g := range config.chosen(suite(testsize.Seed(), testsize.N(plainPrograms)), t.Name(), testsize.Seed()) {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					c.run(&bench{TB: t, config: config, children: children})
				})
			}
		})
	}
}

// A group is a part of the contract, with its cases.
type group struct {
	name  string
	cases []testCase
}

type testCase struct {
	name string
	run  func(b *bench)
}

const (
	// A variant runs one of variantShare cases at a size of 1.
	variantShare = 5
	// Other Runs take one of shortShare cases at a size below 1.
	shortShare = 2
)

// chosen returns the part of the suite that Run takes for the test of a name.
func (c *Config) chosen(all []group, name string, seed uint64) []group {
	if c.Variant == nil && testsize.Size() >= 1 {
		return all
	}
	for _, whole := range c.Variant {
		if !slices.ContainsFunc(all, func(g group) bool { return g.name == whole }) {
			panic(fmt.Sprintf("verbstest: Config.Variant names %q, and there is no such group of cases", whole))
		}
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	size := testsize.N(1)
	share := uint64((variantShare + size - 1) / size)
	if c.Variant == nil {
		share = shortShare
	}
	turn := hash.Sum64() + seed
	var some []group
	for _, g := range all {
		cases := g.cases
		if !slices.Contains(c.Variant, g.name) {
			cases = nil
			for _, one := range g.cases {
				if turn++; turn%share == 0 {
					cases = append(cases, one)
				}
			}
		}
		some = append(some, group{g.name, cases})
	}
	return some
}

// suite returns all cases, with n random programs from a first seed on.
func suite(first uint64, n int) []group {
	return []group{
		{"Device", deviceCases},
		{"Transfer", transferCases},
		{"Order", orderCases},
		{"Limits", limitCases},
		{"Access", accessCases},
		{"Segments", localCases},
		{"Connections", connectCases},
		{"Closing", closeCases},
		{"Memory", memoryCases},
		{"Channel", channelCases},
		{"Serving", serverCases},
		{"Mapping", mapperCases},
		{"Atomics", atomicCases},
		{"Goroutines", goroutineCases},
		{"Programs", programs(first, n)},
	}
}

// A bench is the environment of one case.
type bench struct {
	testing.TB
	config   Config
	children *children
	hellos   int
}

// near opens a device in this process.
func (b *bench) near() *rank {
	b.Helper()
	s := newStation(b.config.Open(b.TB), stationConfig{
		Limit: b.config.Limit, Driven: b.config.Driven, sleep: b.config.Sleep, kill: b.config.Kill,
	})
	b.Cleanup(func() {
		if err := s.close(); err != nil {
			b.Errorf("closing the near device: %v", err)
		}
	})
	return b.rank(s, localDriver{s})
}

// far opens a device where the peers are: in this process or in another.
func (b *bench) far() *rank {
	b.Helper()
	if b.config.link == nil {
		return b.near()
	}
	return b.rank(nil, b.children.driver(b))
}

// two opens a near and a far device.
func (b *bench) two() (near, far *rank) {
	b.Helper()
	return b.near(), b.far()
}

// skipUnless skips the case with a reason if the device lacks an ability.
func (b *bench) skipUnless(able bool, reason string) {
	b.Helper()
	if !able {
		b.Skip("skipped: " + reason)
	}
}

// check fails the case if err is not nil.
func (b *bench) check(err error, doing string) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", doing, err)
	}
}

// together runs body n times at once and fails the case with their errors.
func (b *bench) together(n int, body func(i int) error) {
	b.Helper()
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- body(i) }()
	}
	var failed bool
	for range n {
		if err := <-errs; err != nil {
			b.Error(err)
			failed = true
		}
	}
	if failed {
		b.FailNow()
	}
}
