package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// settings are the switches as the command line sets them.
type settings struct {
	thrown       []string // as given, for the measuring processes and for the header
	options      []window.Option
	tuning       tuning.Tuning
	joins        []world.Option
	single       bool   // accumulates of more than one element are not possible
	same         bool   // accumulates of several operations are not possible
	unregistered bool   // buffers are not registered beforehand
	cards        bool   // only sums of integers can be accumulated
	own          bool   // a switch of the ranks' own devices and links; cases of messages do not use them
	network      string // a switch that needs ranks which use TCP
	shared       string // a switch that needs processes which share memory
	link         string // a switch that needs ranks which use a network or simulated cards
	// arranged is a switch of how windows arrange operations, all of which schemes sets itself.
	arranged string
}

// ofJob returns the options of the job.
func (s *settings) ofJob() []world.Option {
	return append(slices.Clone(s.joins), job.Tune(func(t *tuning.Tuning) { *t = s.tuning }))
}

// A toggle is a switch of one of the library's optimizations.
type toggle struct {
	name   string
	values []string // the first is the default
	about  string
	throw  func(s *settings, value string) error
}

// promise returns a toggle for an option at the creation of windows.
func promise(name, about string, option window.Option) toggle {
	return toggle{name, []string{"off", "on"}, about, func(s *settings, value string) error {
		if value == "on" {
			s.options = append(s.options, option)
		}
		return nil
	}}
}

// noted returns the toggle, which then also records that it is on.
func (t toggle) noted(note func(s *settings)) toggle {
	throw := t.throw
	t.throw = func(s *settings, value string) error {
		if value == "on" {
			note(s)
		}
		return throw(s, value)
	}
	return t
}

func toggles() []toggle {
	single := promise("singleelement", "windows promise accumulates of one element: atomic instructions instead of a lock; longer accumulates are left out", window.SingleElement()).
		noted(func(s *settings) { s.single = true })
	same := promise("sameop", "windows promise one operation for all accumulates; hash tables, which need several, are left out", window.SameOp()).
		noted(func(s *settings) { s.same = true })
	cards := promise("cardatomics", "windows leave accumulates to the atomics of network cards that have them (-device ibv or sim:PROFILE); cases that accumulate other than sums of integers are left out", window.CardAtomics()).
		noted(func(s *settings) { s.cards, s.link = true, "cardatomics=on" })
	copying := toggle{"copy", []string{"auto", "plain", "vector", "string"}, "how the CPU copies 512 bytes and more: by size, or always by the runtime's copy, a loop of vectors, the string instruction", func(_ *settings, value string) error {
		method, err := cpucopy.Parse(value)
		if err != nil {
			return err
		}
		_, err = cpucopy.Use(method)
		return err
	}}
	levels := reduce.Levels()
	slices.Reverse(levels)
	kernels := toggle{"kernels", nil, "instructions that combine several elements of an accumulate: the widest vectors of this processor, or narrower ones, or plain Go", func(_ *settings, value string) error {
		i := slices.IndexFunc(levels, func(l reduce.Level) bool { return strings.ToLower(l.String()) == value })
		_, err := reduce.Use(levels[i])
		return err
	}}
	for _, l := range levels {
		kernels.values = append(kernels.values, strings.ToLower(l.String()))
	}
	encryption := toggle{"tls", []string{"off", "on"}, "ranks encrypt their connections by TLS 1.3 (with -device tcp)", func(s *settings, value string) error {
		if value == "off" {
			return nil
		}
		option, err := encrypted()
		s.joins, s.network, s.own = append(s.joins, option), "tls=on", true
		return err
	}}
	return append([]toggle{
		copying, kernels, encryption,
		single, same, cards,
		promise("immediate", "windows promise that accumulates are applied when their call returns: those of one element are not held back", window.Immediate()),
		promise("unordered", "windows give up the order of accumulates", window.Unordered()),
	}, overLinks()...)
}

// overLinks returns the toggles of ranks that use TCP. Some apply to RDMA cards or simulated ones, too.
func overLinks() []toggle {
	leaving := func(name, about string, leave func(s *settings)) toggle {
		return toggle{name, []string{"on", "off"}, about, func(s *settings, value string) error {
			if value == "off" {
				leave(s)
			}
			return nil
		}}
	}
	const linked, tcpOnly = " (with -device tcp, ibv or sim:PROFILE)", " (with -device tcp)"
	arranging := func(name, about string, ways scheduler.Scheme) toggle {
		return leaving(name, about+linked, func(s *settings) {
			s.tuning.NoSchemes |= ways
			s.arranged, s.link = name+"=off", name+"=off"
		})
	}
	ofLinks := func(name, about string, leave func(t *tuning.Tuning)) toggle {
		return leaving(name, about+linked, func(s *settings) {
			leave(&s.tuning)
			s.own, s.link = true, name+"=off"
		})
	}
	without := func(name, about string, one tcp.Optimization) toggle {
		return leaving(name, about+tcpOnly, func(s *settings) {
			s.tuning.NoSockets |= one
			s.network = name + "=off"
		})
	}
	transfers := toggle{"transfer", []string{"auto"}, "how unregistered memory gets to the card: as its costs and the reuse of buffers suggest, or always in one way" + " (with -device ibv or sim:PROFILE)", func(s *settings, value string) error {
		if value == "auto" {
			return nil
		}
		p, err := transfer.Parse(value)
		s.tuning.NoProtocols, s.own, s.link = transfer.All&^transfer.Of(p), true, "transfer="+value
		return err
	}}
	for p := range transfer.Protocols {
		transfers.values = append(transfers.values, p.String())
	}
	rings := toggle{"rings", []string{"auto", "on", "off"}, "short messages are written into rings in the memory of their receivers, which poll there: on cards that it suits but not in virtual time, or always, or never" + " (with -device ibv or sim:PROFILE)", func(s *settings, value string) error {
		switch value {
		case "auto":
			return nil
		case "on":
			s.tuning.Rings = tuning.RingsAlways
		case "off":
			s.tuning.Rings = tuning.RingsNever
		}
		s.own, s.link = true, "rings="+value
		return nil
	}}
	pipes := leaving("pipes", "messages between ranks that map each other's memory go by pipes there: those of collectives, and short ones of msg_lat and msg_bw (with -device shm)", func(s *settings) {
		s.tuning.NoPipes = true
	})
	notes := leaving("notes", "messages of collectives of up to 48 bytes between ranks that map each other's memory go by notes, a line each", func(s *settings) {
		s.tuning.NoCells = true
	})
	huge := leaving("hugepages", "shared memory of 2 MiB and more is in pages of 2 MiB, if the system has some left (with -device shm)", func(s *settings) {
		s.tuning.NoHugePages, s.own, s.shared = true, true, "hugepages=off"
	})
	staging := leaving("staging", "long messages of collectives go through memory that is made for them, of the sender where the receiver maps it, of the receiver where the sender writes to it", func(s *settings) {
		s.tuning.NoStaging = true
	})
	algorithms := toggle{"algorithm", []string{"auto", "plain", "short", "long"}, "algorithm of collectives: by cost, along trees, in few messages, or with few bytes; plain and long leave out the optimizations for ranks that share cores", func(s *settings, value string) error {
		named := map[string]tuning.Algorithm{"auto": tuning.ByCost, "plain": tuning.Plain, "short": tuning.Short, "long": tuning.Long}
		s.tuning.Algorithm = named[value]
		return nil
	}}
	const untold = "registered"
	registered := leaving(untold, "the program registers the buffers of operations beforehand; off, the library gets them to the card by transfer"+linked, func(s *settings) {
		s.unregistered, s.link = true, untold+"=off"
	})
	return []toggle{
		registered, transfers, rings, huge, pipes, notes, staging, algorithms,
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
		without("favour", "the connection that received last is polled more often than others", tcp.Favour),
		without("dwelling", "a poll reads the connection that received last several times before it finds nothing", tcp.Dwelling),
		without("headerreads", "the header after a long payload is read alone", tcp.HeaderReads),
		without("fewsockets", "a wait for few sockets does not use epoll", tcp.FewSockets),
		without("copies", "short payloads are copied after their headers", tcp.Copies),
		without("reno", "connections within a machine use the Reno congestion control, which does not pace", tcp.Reno),
		without("riding", "the acknowledgement of a message is piggybacked on a frame to its sender, until the next poll", tcp.Riding),
	}
}

// set sets the switch that text, of the form switch=value, names.
func (s *settings) set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	all := toggles()
	i := slices.IndexFunc(all, func(t toggle) bool { return t.name == name })
	if i < 0 {
		var names []string
		for _, t := range all {
			names = append(names, t.name)
		}
		return cli.Usagef("-set %s: there is no switch %q; there are %s", text, name, strings.Join(names, ", "))
	}
	if !slices.Contains(all[i].values, value) {
		return cli.Usagef("-set %s: allowed are %s=%s", text, name, strings.Join(all[i].values, ", "+name+"="))
	}
	if slices.ContainsFunc(s.thrown, func(earlier string) bool { return strings.HasPrefix(earlier, name+"=") }) {
		return cli.Usagef("-set %s: switch %s is given twice", text, name)
	}
	s.thrown = append(s.thrown, text)
	if err := all[i].throw(s, value); err != nil {
		return cli.Usagef("-set %s: %v", text, err)
	}
	return nil
}

// forbids says why a cell cannot be measured with the present switches. It returns "" if it can.
func (s *settings) forbids(one cases.Cell) string {
	if s.single && one.Case.Name == "acc_flush_lat" && one.Size > 8 {
		return fmt.Sprintf("singleelement=on, and it accumulates %d elements", one.Size/8)
	}
	if s.cards {
		switch one.Case.Name {
		case "acc_flush_lat":
			return "cardatomics=on, and it accumulates floats"
		case "update_rate", "mixed_rate", "acc_target_cpu":
			return "cardatomics=on, and it accumulates by xor"
		}
	}
	if s.own && one.Case.Kind == cases.Messages {
		return strings.Join(s.thrown, ", ") + ", and messages go over a device of their own"
	}
	if s.same && one.Case.Kind == cases.Tables {
		return "sameop=on, and a hash table needs several operations"
	}
	return ""
}
