package toggles

import (
	"slices"
	"strings"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/window"
)

// A Toggle is a switch of one of the library's optimizations.
type Toggle struct {
	Name   string
	Values []string // the first is the default
	About  string
	apply  func(s *Settings, value string) error
}

// promise returns a Toggle for an option at the creation of windows.
func promise(name, about string, option window.Option) Toggle {
	return Toggle{name, []string{"off", "on"}, about, func(s *Settings, value string) error {
		if value == "on" {
			s.WindowOptions = append(s.WindowOptions, option)
		}
		return nil
	}}
}

// noted returns the Toggle, which then also records that it is on.
func (t Toggle) noted(note func(s *Settings)) Toggle {
	apply := t.apply
	t.apply = func(s *Settings, value string) error {
		if value == "on" {
			note(s)
		}
		return apply(s, value)
	}
	return t
}

// All returns the switches, in the order of -list.
func All() []Toggle {
	single := promise("singleelement", "windows promise accumulates of one element: atomic instructions instead of a lock; longer accumulates are left out", window.SingleElement()).
		noted(func(s *Settings) { s.oneElement = true })
	same := promise("sameop", "windows promise one operation for all accumulates; hash tables, which need several, are left out", window.SameOp()).
		noted(func(s *Settings) { s.oneOperation = true })
	cards := promise("cardatomics", "windows leave accumulates to the atomics of network cards that have them (-device ibv or sim:PROFILE); cases that accumulate other than sums of integers are left out", window.CardAtomics()).
		noted(func(s *Settings) { s.cardAtomics, s.NeedsLinks = true, "cardatomics=on" })
	copying := Toggle{"copy", []string{"auto", "plain", "vector", "string"}, "how the CPU copies 512 bytes and more: by size, or always by the runtime's copy, a loop of vectors, the string instruction", func(_ *Settings, value string) error {
		method, err := cpucopy.Parse(value)
		if err != nil {
			return err
		}
		_, err = cpucopy.Use(method)
		return err
	}}
	levels := reduce.Levels()
	slices.Reverse(levels)
	kernels := Toggle{"kernels", nil, "instructions that combine several elements of an accumulate: the widest vectors of this processor, or narrower ones, or plain Go", func(_ *Settings, value string) error {
		i := slices.IndexFunc(levels, func(l reduce.Level) bool { return strings.ToLower(l.String()) == value })
		_, err := reduce.Use(levels[i])
		return err
	}}
	for _, l := range levels {
		kernels.Values = append(kernels.Values, strings.ToLower(l.String()))
	}
	encryption := Toggle{"tls", []string{"off", "on"}, "ranks encrypt their connections by TLS 1.3 (with -device tcp)", func(s *Settings, value string) error {
		if value == "off" {
			return nil
		}
		option, err := encrypted()
		s.joins, s.NeedsTCP, s.ownDevices = append(s.joins, option), "tls=on", true
		return err
	}}
	return append([]Toggle{
		copying, kernels, encryption,
		single, same, cards,
		promise("immediate", "windows promise that accumulates are applied when their call returns: those of one element are not held back", window.Immediate()),
		promise("unordered", "windows give up the order of accumulates", window.Unordered()),
	}, overLinks()...)
}

// overLinks returns the toggles of ranks that use TCP. Some apply to RDMA cards or simulated ones, too.
func overLinks() []Toggle {
	leaving := func(name, about string, leave func(s *Settings)) Toggle {
		return Toggle{name, []string{"on", "off"}, about, func(s *Settings, value string) error {
			if value == "off" {
				leave(s)
			}
			return nil
		}}
	}
	const linked, tcpOnly = " (with -device tcp, ibv or sim:PROFILE)", " (with -device tcp)"
	arranging := func(name, about string, schemes scheduler.Scheme) Toggle {
		return leaving(name, about+linked, func(s *Settings) {
			s.Tuning.NoSchemes |= schemes
			s.Arranges, s.NeedsLinks = name+"=off", name+"=off"
		})
	}
	ofLinks := func(name, about string, leave func(t *tuning.Tuning)) Toggle {
		return leaving(name, about+linked, func(s *Settings) {
			leave(&s.Tuning)
			s.ownDevices, s.NeedsLinks = true, name+"=off"
		})
	}
	without := func(name, about string, one tcp.Optimization) Toggle {
		return leaving(name, about+tcpOnly, func(s *Settings) {
			s.Tuning.NoSockets |= one
			s.NeedsTCP = name + "=off"
		})
	}
	transfers := Toggle{"transfer", []string{"auto"}, "how unregistered memory gets to the card: as its costs and the reuse of buffers suggest, or always in one way" + " (with -device ibv or sim:PROFILE)", func(s *Settings, value string) error {
		if value == "auto" {
			return nil
		}
		p, err := transfer.Parse(value)
		s.Tuning.NoProtocols, s.ownDevices, s.NeedsLinks = transfer.All&^transfer.Of(p), true, "transfer="+value
		return err
	}}
	for p := range transfer.Protocols {
		transfers.Values = append(transfers.Values, p.String())
	}
	rings := Toggle{"rings", []string{"auto", "on", "off"}, "short messages are written into rings in the memory of their receivers, which poll there: on cards that it suits but not in virtual time, or always, or never" + " (with -device ibv or sim:PROFILE)", func(s *Settings, value string) error {
		switch value {
		case "auto":
			return nil
		case "on":
			s.Tuning.Rings = tuning.RingsAlways
		case "off":
			s.Tuning.Rings = tuning.RingsNever
		}
		s.ownDevices, s.NeedsLinks = true, "rings="+value
		return nil
	}}
	pipes := leaving("pipes", "messages between ranks that map each other's memory go by pipes there: those of collectives, and short ones of msg_lat and msg_bw (with -device shm)", func(s *Settings) {
		s.Tuning.NoPipes = true
	})
	cells := leaving("cells", "messages of collectives of up to 48 bytes between ranks that map each other's memory go in cells: a cache line holds flag and data", func(s *Settings) {
		s.Tuning.NoCells = true
	})
	huge := leaving("hugepages", "shared memory of 2 MiB and more is in pages of 2 MiB, if the system has some left (with -device shm)", func(s *Settings) {
		s.Tuning.NoHugePages, s.ownDevices, s.NeedsSharedMemory = true, true, "hugepages=off"
	})
	staging := leaving("staging", "long messages of collectives go through memory that is made for them, of the sender where the receiver maps it, of the receiver where the sender writes to it", func(s *Settings) {
		s.Tuning.NoStaging = true
	})
	algorithms := Toggle{"algorithm", []string{"auto", "plain", "short", "long"}, "algorithm of collectives: by cost, along trees, in few messages, or with few bytes; plain and long leave out the optimizations for ranks that share cores", func(s *Settings, value string) error {
		named := map[string]tuning.Algorithm{"auto": tuning.ByCost, "plain": tuning.Plain, "short": tuning.Short, "long": tuning.Long}
		s.Tuning.Algorithm = named[value]
		return nil
	}}
	const registeredName = "registered"
	registered := leaving(registeredName, "the program registers the buffers of operations beforehand; off, the library gets them to the card by transfer"+linked, func(s *Settings) {
		s.Unregistered, s.NeedsLinks = true, registeredName+"=off"
	})
	return []Toggle{
		registered, transfers, rings, huge, pipes, cells, staging, algorithms,
		arranging("defer", "operations wait for a synchronization, or until enough of them wait; off, the next six are off too", scheduler.Defer),
		arranging("getsfirst", "reads are sent before writes; off, the next is off too", scheduler.GetsFirst),
		arranging("interleave", "direct reads and writes alternate", scheduler.Interleave),
		arranging("pack", "small operations are packed into messages, with the synchronization", scheduler.Pack),
		arranging("merge", "small puts to adjacent displacements are merged, and accumulates of a word are queued in runs", scheduler.Merge),
		arranging("early", "operations are started before the synchronization when enough of them wait", scheduler.Early),
		arranging("adapt", "windows leave out the schemes that have turned out not to pay", scheduler.Adapt),
		ofLinks("collect", "work requests of deferred operations and messages are collected and posted together", func(t *tuning.Tuning) { t.NoCollecting = true }),
		ofLinks("inline", "short data goes to the card within the work request that writes or sends it", func(t *tuning.Tuning) { t.NoInline = true }),
		ofLinks("standback", "the background progress of a rank pauses while the rank's own calls are frequent and no rank waits", func(t *tuning.Tuning) { t.NoStandBack = true }),
		ofLinks("striping", "long transfers use all cards of ranks that have several (-rails, RMA_ADDRESS or RMA_IBV_DEVICE)", func(t *tuning.Tuning) { t.NoStriping = true }),
		without("batches", "several requests and responses are sent by one system call", tcp.Batches),
		without("pollrecent", "the connection that received last is polled more often than others", tcp.PollRecent),
		without("headerreads", "the header after a long payload is read alone", tcp.HeaderReads),
		without("fewsockets", "a wait for few sockets does not use epoll", tcp.FewSockets),
		without("copies", "short payloads are copied after their headers", tcp.Copies),
		without("reno", "connections within a machine use the Reno congestion control, which does not pace", tcp.Reno),
		without("delayedacks", "the acknowledgement of a message is delayed until the next poll, so that a frame to its sender can carry it", tcp.DelayedAcknowledgements),
	}
}
