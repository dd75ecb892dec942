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

// Config tells the suite how to come by devices.
type Config struct {
	// Open opens a device. All devices that it opens during one Run can
	// connect to each other. The suite closes them.
	Open func(t testing.TB) verbs.Device

	// Peer, if it is not nil, makes the command of a process, such as [Self], that
	// calls [ServePeer] with its standard input and output, and whose devices and
	// those of Open can connect to each other. The far side of every case is
	// then in such a process. Some cases kill it.
	Peer func(t testing.TB) *exec.Cmd

	// Kill, if it is not nil, ends a device of Open as the end of its process would, without a word to
	// its peers. Otherwise the suite closes the devices of this process that are to die.
	Kill func(device verbs.Device)

	// Driven tells that a device serves its peers only while somebody polls
	// its completion queues. Those of every device of a case are then polled
	// (for no completions) by a goroutine that sleeps on the device's channel
	// in between.
	Driven bool

	// Allocates, if it is not empty, says why moving messages through the device
	// allocates. The cases that it must not are then skipped.
	Allocates string

	// Sleep, if it is not nil, stands in for device.Channel().Sleep wherever
	// the suite sleeps. One goroutine plays all ranks of most cases, so that a
	// device in virtual time cannot see that all of them wait: this tells it,
	// and it may move its clock to the next event, or by limit if there is
	// none. Where a case has several goroutines each calls Sleep for itself.
	Sleep func(device verbs.Device, ticket uint32, limit time.Duration)

	// Limit bounds how long a case waits for one thing before it says that
	// it does not come. Zero is two minutes: Limit is there to end a hang, and a
	// slow machine must not exceed it.
	Limit time.Duration

	// Variant, if it is not nil, says that another Run tests the same device, and
	// that the devices here differ from it in a part. It names the groups of cases
	// that the difference can change, such as "Connections", "Transfer". They run whole.
	// Of the cases of the other groups, Run takes a fifth where RMA_TEST_SIZE is 1,
	// by turns of RMA_TEST_SEED and of the test's name, and all from a size of 5.
	// Below that size Run also calls t.Parallel, and skips what counts allocations.
	// If it is nil, Run takes all cases, but every other one, by the same turns, where the size is below 1.
	Variant []string

	// link is how to reach a new peer; nil if peers are in this process.
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

// A group is a part of the contract, with the cases that state it.
type group struct {
	name  string
	cases []testCase
}

type testCase struct {
	name string
	run  func(b *bench)
}

const (
	// variantShare is of how many cases a variant runs one at a size of 1.
	variantShare = 5
	// shortShare is of how many cases other Runs take one at a size below 1.
	shortShare = 2
)

// chosen returns what Run takes of the suite for the test of a name.
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

// A bench is what one case has at hand.
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

// far opens a device where peers are: in this process or in another.
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

// skipUnless skips the case, saying why, where the device lacks an ability.
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
