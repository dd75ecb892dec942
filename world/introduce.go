package world

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/shm"
)

// An introduction is what a rank says of itself before any device is known.
type introduction struct {
	// rank of size.
	rank, size int
	// device is what it was told to use, empty for the best.
	device string
	// machine names the running kernel, net its network as seen from the rank, and
	// host what ranks must have in common to share memory: empty for a rank that
	// shares none.
	machine, net, host string
	// cores is how many this rank may use; bound is the same for ranks that may use the same ones, as launchers bind
	// ranks to some of a machine's. all is how many the machine has, 0 if it does not tell.
	cores, all int
	bound      string
	// rdma tells that the rank has an RDMA card.
	rdma bool
	// ways are those of its collectives.
	ways ways
	// key is the job's, hexadecimal; that of rank 0 counts.
	key string
	// unshared is why this rank could share no memory. It is not told.
	unshared error
}

const introductionVersion = "rma8"

func (i *introduction) text() string {
	return strings.Join([]string{introductionVersion, strconv.Itoa(i.rank), strconv.Itoa(i.size), i.device, i.machine, i.net, i.host, strconv.Itoa(i.cores), strconv.FormatBool(i.rdma),
		strconv.Itoa(int(i.ways.algorithm)), strconv.FormatBool(i.ways.unpiped), strconv.FormatBool(i.ways.unnoted), strconv.FormatBool(i.ways.unstaged), i.key, i.bound, strconv.Itoa(i.all)}, ";")
}

func parseIntroduction(text string) (introduction, error) {
	fields := strings.Split(text, ";")
	if fields[0] != introductionVersion {
		return introduction{}, fmt.Errorf("%w: %.80q is not of version %s: all ranks must run the same version", errContact, text, introductionVersion)
	}
	if len(fields) != 16 {
		return introduction{}, fmt.Errorf("%w of %d fields: %.80q", errContact, len(fields), text)
	}
	i := introduction{device: fields[3], machine: fields[4], net: fields[5], host: fields[6], key: fields[13], bound: fields[14]}
	var err error
	if i.rank, err = strconv.Atoi(fields[1]); err != nil {
		return introduction{}, fmt.Errorf("%w: rank %q", errContact, fields[1])
	}
	if i.size, err = strconv.Atoi(fields[2]); err != nil {
		return introduction{}, fmt.Errorf("%w: size %q", errContact, fields[2])
	}
	if i.cores, err = strconv.Atoi(fields[7]); err != nil || i.cores < 1 {
		return introduction{}, fmt.Errorf("%w: %q cores", errContact, fields[7])
	}
	if i.all, err = strconv.Atoi(fields[15]); err != nil || i.all < 0 {
		return introduction{}, fmt.Errorf("%w: %q cores of a machine", errContact, fields[15])
	}
	if i.rdma, err = strconv.ParseBool(fields[8]); err != nil {
		return introduction{}, fmt.Errorf("%w: %q for an RDMA card", errContact, fields[8])
	}
	algorithm, err := strconv.ParseUint(fields[9], 10, 8)
	unpiped, err2 := strconv.ParseBool(fields[10])
	unnoted, err3 := strconv.ParseBool(fields[11])
	unstaged, err4 := strconv.ParseBool(fields[12])
	if err := errors.Join(err, err2, err3, err4); err != nil || algorithm >= uint64(algorithms) {
		return introduction{}, fmt.Errorf("%w: %q for the ways of collectives", errContact, fields[9:13])
	}
	i.ways = ways{Algorithm(algorithm), unpiped, unnoted, unstaged}
	return i, nil
}

// introduce tells of this rank, and opens its device for shared memory if it can be
// wanted.
func introduce(rank, size int, s settings) (introduction, verbs.Device, error) {
	me := introduction{rank: rank, size: size, device: s.device, cores: s.cores, ways: s.ways}
	me.machine, me.net, me.host = whereabouts(s.host)
	me.bound, me.all = allowed()
	if me.all > 0 {
		me.all = max(me.all, me.cores)
	}
	if rank == 0 {
		key := s.key
		if key == nil {
			key = make([]byte, 32)
			_, _ = rand.Read(key)
		}
		me.key = hex.EncodeToString(key)
	}
	if s.key != nil {
		// Everyone has it, so it need not be told.
		me.key = ""
	}
	if err := me.findRDMA(s); err != nil {
		return me, nil, err
	}
	if s.unshared || s.device == tcpDevice || s.device == ibvDevice {
		me.host = ""
		return me, nil, nil
	}
	device, err := s.openShared(size)
	if err != nil && s.device == "" && errors.Is(err, errors.ErrUnsupported) {
		me.host, me.unshared = "", err
		return me, nil, nil
	}
	if err != nil {
		return me, nil, err
	}
	return me, device, nil
}

// findRDMA finds out whether this rank has an RDMA card, if one can be wanted. It is an error
// not to have one only where it has to be used, but what is no name of a card always is.
func (i *introduction) findRDMA(s settings) error {
	if s.network != nil || s.device != "" && s.device != ibvDevice {
		return nil
	}
	var err error
	if s.tls != nil {
		err = &verbs.CapabilityError{Device: ibvDevice, Capability: "encrypt", Reason: "what crosses an RDMA fabric is not encrypted; WithTLS is for TCP (RMA_DEVICE=tcp, or none)"}
	} else {
		err = usable(s.rdmaOptions())
	}
	i.rdma = err == nil
	var wrong *verbs.ArgumentError
	switch {
	case err == nil:
	case s.device == ibvDevice || errors.As(err, &wrong):
		return fmt.Errorf("device %s: %w", ibvDevice, err)
	case errors.Is(err, errors.ErrUnsupported):
		s.logger.Debug("no RDMA card", "rank", i.rank, "why", err)
	default:
		s.logger.Warn("an RDMA card that cannot be used", "rank", i.rank, "why", err)
	}
	return nil
}

// usable says what is wrong with the cards that options name.
func usable(options ibv.Options) error {
	each, err := options.Rails()
	for _, one := range each {
		if err == nil {
			err = ibv.Usable(one)
		}
	}
	return err
}

// openShared opens the device for ranks that share memory.
func (s *settings) openShared(size int) (verbs.Device, error) {
	return shm.Open(shm.Options{Ranks: size, SmallPages: s.smallPages, HandshakeLimit: max(s.silence, DefaultSilence)})
}

// introductions exchanges them.
func introductions(ctx context.Context, exchange Exchange, size int, mine introduction) ([]introduction, error) {
	texts, err := gatherTexts(ctx, exchange, size, mine.text())
	if err != nil {
		return nil, err
	}
	ranks := make([]introduction, size)
	for rank, text := range texts {
		if ranks[rank], err = parseIntroduction(text); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
		if ranks[rank].rank != rank {
			return nil, fmt.Errorf("%w: the exchange gave the text of rank %d in the place of rank %d", errContact, ranks[rank].rank, rank)
		}
		if ranks[rank].size != size {
			return nil, fmt.Errorf("%w: rank %d was told that the size of the job is %d, this rank that it is %d", ErrMismatch, rank, ranks[rank].size, size)
		}
		if ranks[rank].device != mine.device {
			return nil, fmt.Errorf("%w: rank %d %s, this rank %s", ErrMismatch, rank, told(ranks[rank].device), told(mine.device))
		}
		if ranks[rank].ways != mine.ways {
			return nil, fmt.Errorf("%w: rank %d has %v, this rank %v: they have to be the same on all", ErrMismatch, rank, ranks[rank].ways, mine.ways)
		}
	}
	return ranks, nil
}

// logUnshared tells the logger why this rank shares no memory. It warns, by the first of the ranks of the
// machine that share none, if they would share it but for a limit of the host.
func (i *introduction) logUnshared(logger *slog.Logger, ranks []introduction) {
	if i.unshared == nil {
		return
	}
	level, beside := slog.LevelInfo, 0
	var missing *verbs.CapabilityError
	if errors.As(i.unshared, &missing) && missing.Cause != nil {
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

// unset is said of a variable that is empty, which is as if it were not there.
const unset = "unset (automatic choice)"

// told is which device a rank was told to use, said of the rank.
func told(device string) string {
	if device == "" {
		return "has RMA_DEVICE " + unset
	}
	return fmt.Sprintf("was told to use device %q (RMA_DEVICE)", device)
}

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
func cardsOf(ranks []introduction, me int) (wanted [cardKinds]bool, err error) {
	mine := &ranks[me]
	for rank := range ranks {
		other := &ranks[rank]
		switch {
		case mine.host == "" || other.host != mine.host:
			if mine.device == shmDevice {
				return wanted, &verbs.CapabilityError{Device: mine.device, Capability: fmt.Sprintf("reach rank %d", rank), Reason: mine.apart(other) + ", and RMA_DEVICE allows shared memory only"}
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
}
