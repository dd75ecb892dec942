package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseFaults reads what Faults.String has written, so that a plan can be kept with the
// test that it failed. Empty lines, and what follows a #, count for nothing:
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

// parseFault reads the words of a line.
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
		keep(problem)
		return n
	}

	if word := next(); word != "at" {
		keep(fmt.Errorf("%q where %q is expected", word, "at"))
	}
	if len(words) > 0 && words[0] == "event" {
		next()
		n, problem := strconv.ParseUint(next(), 10, 64)
		keep(problem)
		if f.Event = n; n == 0 {
			keep(fmt.Errorf("event 0; they count from 1"))
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
			keep(fmt.Errorf("%s has no %q", name, word))
		}
	}
	return f, err
}
