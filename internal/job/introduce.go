package job

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/onesided/rma/internal/bootstrap/root"
	"github.com/onesided/rma/internal/descriptors"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/shm"
)

// An introduction is what a rank says of itself before any device is known.
type introduction struct {
	rank int
	// terms are what it has to have in common with the others.
	terms root.Terms
	// machine names the running kernel, net its network as seen from the rank, and
	// host what ranks must have in common to share memory: empty for a rank that
	// shares none.
	machine, net, host string
	// cores is how many this rank may use; bound is the same for ranks that may use the same ones, as launchers bind
	// ranks to some of a machine's. all is how many the machine has, 0 if it does not tell.
	cores, all int
	bound      string
	// rdma is over how many RDMA cards the rank may be reached.
	rdma int
	// descriptors is how many file descriptors this rank can open beside those of its device for shared memory. It counts no more
	// than it may need.
	descriptors int
	// key is the job's, hexadecimal; that of rank 0 counts.
	key string
	// unshared is why this rank shares no memory, if a limit of the host is the reason. It is not told.
	unshared error
}

func (i *introduction) text() string {
	return strings.Join([]string{protocol, strconv.Itoa(i.rank), url.QueryEscape(string(i.terms)), i.machine, i.net, i.host, strconv.Itoa(i.cores), strconv.Itoa(i.rdma), i.key, i.bound, strconv.Itoa(i.all), strconv.Itoa(i.descriptors)}, ";")
}

// parseIntroduction reads what text has written, but for the version.
func parseIntroduction(text string) (introduction, error) {
	fields := strings.Split(text, ";")
	if len(fields) != 11 {
		return introduction{}, fmt.Errorf("%w of %s: %.80q", errContact, errtext.Count(len(fields), "field"), text)
	}
	i := introduction{machine: fields[2], net: fields[3], host: fields[4], key: fields[7], bound: fields[8]}
	for _, field := range []struct {
		what  string
		text  string
		least int
		into  *int
	}{
		{"rank", fields[0], 0, &i.rank},
		{"cores", fields[5], 1, &i.cores},
		{"RDMA cards", fields[6], 0, &i.rdma},
		{"cores of a machine", fields[9], 0, &i.all},
		{"file descriptors", fields[10], 0, &i.descriptors},
	} {
		var err error
		if *field.into, err = strconv.Atoi(field.text); err != nil || *field.into < field.least {
			return introduction{}, fmt.Errorf("%w: %q for %s", errContact, field.text, field.what)
		}
	}
	terms, err := url.QueryUnescape(fields[1])
	if err != nil || strings.ContainsFunc(terms, func(r rune) bool { return r < ' ' || r > '~' }) {
		return introduction{}, fmt.Errorf("%w: terms %q", errContact, fields[1])
	}
	i.terms = root.Terms(terms)
	return i, nil
}

// introduce tells of this rank, and opens its device for shared memory if it can be
// wanted.
func introduce(rank, size int, s Settings) (introduction, *shm.Device, error) {
	me := introduction{rank: rank, terms: s.terms(size), cores: s.cores}
	me.machine, me.net, me.host = whereabouts(s.host)
	me.bound, me.all = allowed()
	if me.all > 0 {
		me.all = max(me.all, me.cores)
	}
	key := s.key
	if key == nil {
		// That of rank 0 becomes the job's. Until then nobody has this rank's.
		key = make([]byte, 32)
		_, _ = rand.Read(key)
		if rank == 0 {
			me.key = hex.EncodeToString(key)
		}
	}
	if err := me.findRDMA(s); err != nil {
		return me, nil, err
	}
	if s.unshared || s.device == tcpDevice || s.device == ibvDevice {
		me.host = ""
		return me, nil, nil
	}
	device, err := s.openShared(size, key)
	if err != nil && s.device == "" && errors.Is(err, errors.ErrUnsupported) {
		me.host, me.unshared = "", err
		return me, nil, nil
	}
	if err != nil {
		return me, nil, err
	}
	me.descriptors = descriptors.Free(sharingDescriptors(size-1, size-1, max(me.rdma, s.addresses())))
	return me, device, nil
}

// findRDMA finds out whether this rank has an RDMA card, if one can be wanted. It is an error
// not to have one only where it has to be used, but what is no name of a card always is.
func (i *introduction) findRDMA(s Settings) error {
	if s.network != nil || s.device != "" && s.device != ibvDevice {
		return nil
	}
	cards, err := s.rdmaOptions().Rails()
	if s.tls != nil {
		err = &verbs.CapabilityError{Device: ibvDevice, Capability: "encrypt", Reason: "what crosses an RDMA fabric is not encrypted; WithTLS is for TCP (RMA_DEVICE=tcp, or none)"}
	}
	for _, card := range cards {
		if err == nil {
			err = ibv.Usable(card)
		}
	}
	if err == nil {
		i.rdma = len(cards)
	}
	var wrong *verbs.ArgumentError
	switch {
	case err == nil:
	case s.device == ibvDevice || errors.As(err, &wrong):
		return err
	case errors.Is(err, errors.ErrUnsupported):
		s.logger.Debug("no RDMA card", "rank", i.rank, "why", err)
	default:
		s.logger.Warn("an RDMA card that cannot be used", "rank", i.rank, "why", err)
	}
	return nil
}

// openShared opens the device for ranks that share memory.
func (s *Settings) openShared(size int, key []byte) (*shm.Device, error) {
	return shm.Open(shm.Options{Ranks: size, Key: key, SmallPages: s.tuning.NoHugePages, HandshakeLimit: max(s.silence, DefaultSilence)})
}

// introductions exchanges them.
func introductions(ctx context.Context, exchange Exchange, size int, mine introduction) ([]introduction, error) {
	texts, err := gatherTexts(ctx, exchange, size, mine.text())
	if err != nil {
		return nil, err
	}
	ranks := make([]introduction, size)
	for rank, text := range texts {
		version, rest, _ := strings.Cut(text, ";")
		if version != protocol {
			return nil, disagreement(rank, versionTerm(clean(fmt.Sprintf("%.20s", version))), versionTerm(protocol))
		}
		if ranks[rank], err = parseIntroduction(rest); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
		if ranks[rank].rank != rank {
			return nil, fmt.Errorf("%w: the exchange gave the text of rank %d in the place of rank %d", errContact, ranks[rank].rank, rank)
		}
		if err := agree(rank, ranks[rank].terms, mine.terms); err != nil {
			return nil, err
		}
	}
	return ranks, nil
}

// limitSharing has the ranks of a host share no memory where one of them has too few file descriptors for that: the others would
// wait for connections that it cannot accept. Every rank finds the same. The network has as many devices as each rank has addresses,
// or RDMA cards.
func limitSharing(ranks []introduction, device string, addresses int) {
	devices := addresses
	if networkOf(ranks, device) == ibvDevice {
		// agreeOnCards refuses ranks that have not equally many.
		devices = min(ranks[0].rdma, mostCounted)
	}
	type group struct {
		size int
		// fewest is the first of the ranks that can open the fewest descriptors.
		fewest int
	}
	groups := make(map[string]group)
	for rank := range ranks {
		g, known := groups[ranks[rank].host]
		if !known || ranks[rank].descriptors < ranks[g.fewest].descriptors {
			g.fewest = rank
		}
		g.size++
		groups[ranks[rank].host] = g
	}
	for host, g := range groups {
		left, needed := ranks[g.fewest].descriptors, sharingDescriptors(g.size-1, len(ranks)-g.size, devices)
		if host == "" || g.size == 1 || left >= needed {
			continue
		}
		short := &verbs.CapabilityError{Device: shmDevice, Capability: fmt.Sprintf("share memory among %d ranks", g.size),
			Reason: fmt.Sprintf("rank %d needs %d free file descriptors and has %d: raise RLIMIT_NOFILE (ulimit -n) by %d", g.fewest, needed, left, needed-left)}
		for rank := range ranks {
			if ranks[rank].host == host {
				ranks[rank].host, ranks[rank].unshared = "", short
			}
		}
	}
}

// logUnshared tells the logger why this rank shares no memory. It warns, by the first of the ranks of the
// machine that share none, if they would share it but for a limit of the host. So it does where ranks are in name spaces of their own.
func (i *introduction) logUnshared(logger *slog.Logger, ranks []introduction) {
	if i.unshared == nil {
		i.logSeparate(logger, ranks)
		return
	}
	level, beside := slog.LevelInfo, 0
	// What the system cannot do at all is no limit of the host.
	if runtime.GOOS == "linux" {
		level = slog.LevelWarn
	}
	for rank := range ranks {
		if other := &ranks[rank]; other.machine == i.machine && rank != i.rank {
			beside++
			if other.host == "" && rank < i.rank {
				level = slog.LevelInfo
			}
		}
	}
	if beside == 0 {
		level = slog.LevelInfo
	}
	logger.Log(context.Background(), level, "no shared memory: ranks of this machine reach each other over the network, which is slower", "rank", i.rank, "why", i.unshared)
}

// logSeparate warns that another rank of the machine is in another name space, and shares no memory for that. It does so by the first
// of the ranks whose RMA_HOST says the same: that others share no memory with those is what the user wants.
func (i *introduction) logSeparate(logger *slog.Logger, ranks []introduction) {
	if i.host == "" {
		return
	}
	separate := -1
	for rank := range ranks {
		other := &ranks[rank]
		switch {
		case other.machine != i.machine || rank == i.rank || other.host == "" || other.called() != i.called():
		case rank < i.rank:
			return
		case separate < 0 && other.host != i.host:
			separate = rank
		}
	}
	if separate >= 0 {
		logger.Warn("no shared memory: ranks of this machine reach each other over the network, which is slower", "rank", i.rank, "why", fmt.Sprintf("rank %d: %s", separate, i.apart(&ranks[separate])))
	}
}

// unset is said of a variable that is empty, which is as if it were not there.
const unset = "unset (automatic choice)"

// apart tells why another rank shares no memory with this one, said of the other.
func (i *introduction) apart(other *introduction) string {
	mine, theirs := i.called(), other.called()
	switch {
	case other.host == "" || i.host == "":
		return "memory is not shared with it"
	case i.machine != other.machine:
		return "it is on another machine"
	case mine != theirs:
		return fmt.Sprintf("its RMA_HOST is %s, this rank's %s", theirs, mine)
	case i.net != other.net:
		return "it is in another network name space"
	}
	return "it is in another name space of processes"
}

// called is what RMA_HOST says.
func (i *introduction) called() string {
	rest := strings.TrimPrefix(i.host, i.machine+"/"+i.net+"/")
	if _, name, _ := strings.Cut(rest, "/"); name != "" {
		return strconv.Quote(name)
	}
	return unset
}

// cardsOf tells which devices a rank needs: shared memory if another is on its host,
// the network if not all are.
func cardsOf(ranks []introduction, me int, device string) (wanted [cardKinds]bool, err error) {
	mine := &ranks[me]
	for rank := range ranks {
		other := &ranks[rank]
		switch {
		case mine.host == "" || other.host != mine.host:
			if device == shmDevice && mine.unshared != nil {
				return wanted, mine.unshared
			}
			if device == shmDevice {
				return wanted, &verbs.CapabilityError{Device: device, Capability: fmt.Sprintf("reach rank %d", rank), Reason: mine.apart(other) + ", and RMA_DEVICE allows shared memory only"}
			}
			wanted[networkCard] = true
		default:
			wanted[sharedCard] = wanted[sharedCard] || rank != me || len(ranks) == 1
		}
	}
	return wanted, nil
}

// near tells that all ranks are on one machine and see one network, so that its
// loopback address will do.
func near(ranks []introduction) bool {
	for i := range ranks {
		if ranks[i].machine != ranks[0].machine || ranks[i].net != ranks[0].net {
			return false
		}
	}
	return true
}

// whereabouts names the running kernel, the network name space, and with them the
// name space of processes and what RMA_HOST says: what processes must have in
// common to share memory.
func whereabouts(override string) (machine, net, host string) {
	machine = runtime.GOOS
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		machine += "/" + strings.TrimSpace(string(boot))
	} else if name, err := os.Hostname(); err == nil {
		machine += "/" + clean(name)
	}
	space := func(kind string) string {
		id, _ := os.Readlink("/proc/self/ns/" + kind)
		return id
	}
	net = space("net")
	return machine, net, strings.Join([]string{machine, net, space("pid"), clean(override)}, "/")
}

// allowed stands for the cores that this process may use, of all that there are, if the system tells.
func allowed() (bound string, all int) {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "\nCpus_allowed_list:")
	list, _, _ := strings.Cut(rest, "\n")
	cores, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*")
	return strconv.FormatUint(xxhash.Sum64String(strings.TrimSpace(list)), 36), len(cores)
}

// clean makes text printable and free of what separates fields.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == ';' {
			return '_'
		}
		return r
	}, text)
}

// opening is what a device is opened for.
type opening struct {
	rank int
	// device is the name of the one to open.
	device string
	// near: all ranks can be reached over the loopback address.
	near bool
	// key is the job's, as rank 0 has told it.
	key string
	// counts is of the other ranks.
	counts rankCounts
}

// rankCounts counts the ranks that a rank may reach: neighbors share memory with it, the others need a network.
type rankCounts struct{ neighbors, others int }

// countRanks counts the ranks other than me that are not gone.
func countRanks(ranks []introduction, me int, gone func(rank int) bool) (r rankCounts) {
	for rank := range ranks {
		switch {
		case rank == me || gone(rank):
		case ranks[me].host != "" && ranks[rank].host == ranks[me].host:
			r.neighbors++
		default:
			r.others++
		}
	}
	return r
}

// toShare is how many descriptors this rank needs to share memory.
func (o *opening) toShare() int {
	if o.counts.neighbors == 0 {
		return 0
	}
	return shm.Descriptors(o.counts.neighbors)
}

// toConnect is how many descriptors the devices of a network need to reach the ranks with which this rank shares no memory.
func (o *opening) toConnect(devices int) int {
	return connectDescriptors(o.counts.others, devices)
}
