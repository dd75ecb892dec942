package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseFaults parses the output of [Faults.String], so that a plan can be kept with the test that it failed. Empty
// lines, and everything after a #, are ignored:
//
//	at 1.5ms kill rank 3
//	at event 1200 stall rank 0 in for 20ms # until here all went well
//	at 2ms power-loss rank 0,2,4
func ParseFaults(text string) (Faults, error) {
	var faults Faults
	for number, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		f, err := parseFault(words)
		if err == nil {
			err = f.check()
		}
		if err != nil {
			return nil, fmt.Errorf("sim: faults: line %d, %q: %w", number+1, strings.TrimSpace(line), err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// parseFault parses the words of a line.
func parseFault(words []string) (f Fault, err error) {
	next := func() (word string) {
		if len(words) == 0 {
			if err == nil {
				err = fmt.Errorf("the line ends too early; %q is whole", "at 1ms kill rank 3")
			}
			return ""
		}
		word, words = words[0], words[1:]
		return word
	}
	keep := func(problem error) {
		if err == nil {
			err = problem
		}
	}
	span := func() time.Duration {
		d, problem := time.ParseDuration(next())
		keep(problem)
		return d
	}
	count := func(word string) int {
		n, problem := strconv.Atoi(word)
		if problem != nil {
			keep(fmt.Errorf("%q where a number is expected", word))
		}
		return n
	}

	if word := next(); word != "at" {
		keep(fmt.Errorf("%q where %q is expected", word, "at"))
	}
	if len(words) > 0 && words[0] == "event" {
		next()
		word := next()
		n, problem := strconv.ParseUint(word, 10, 64)
		if f.Event = n; problem != nil || n == 0 {
			keep(fmt.Errorf("event %q; they count from 1", word))
		}
	} else {
		f.At = span()
	}
	name := next()
	kind := slices.Index(faultNames[:], name)
	if kind < 0 {
		keep(fmt.Errorf("no fault %q; allowed are %s", name, strings.Join(faultNames[:], ", ")))
		return f, err
	}
	f.Kind = FaultKind(kind)
	if word := next(); word != "rank" {
		keep(fmt.Errorf("%q where %q is expected", word, "rank"))
	}
	if f.Kind == PowerLoss {
		for word := range strings.SplitSeq(next(), ",") {
			f.Ranks = append(f.Ranks, count(word))
		}
	} else {
		f.Rank = count(next())
	}
	for len(words) > 0 && err == nil {
		switch word := next(); {
		case word == "peer" && f.Kind == FailPair:
			f.Peer = count(next())
		case (word == "in" || word == "out") && (f.Kind == Delay || f.Kind == Stall):
			if f.Direction = Out; word == "in" {
				f.Direction = In
			}
		case word == "by" && f.Kind == Delay:
			f.By = span()
		case word == "by" && f.Kind == Slow:
			f.Factor = count(next())
		case word == "times" && f.Kind == Starve:
			f.Times = count(next())
		case word == "for" && f.Kind.lasts():
			f.For = span()
		default:
			keep(fmt.Errorf("%s has no %q; after the rank, allowed are %s", name, word, f.Kind.more()))
		}
	}
	return f, err
}

// more returns the words that may follow the rank of a fault.
func (k FaultKind) more() string {
	switch k {
	case FailPair:
		return "peer"
	case Delay:
		return "in or out, by, and for"
	case Stall:
		return "in or out, and for"
	case Slow:
		return "by, and for"
	case RejectMemory:
		return "for"
	case Starve:
		return "times"
	}
	return "nothing"
}
