package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
)

// A Selection names what is measured.
type Selection struct {
	Ranks int     // 0: the number for which each case is made
	Sizes []int   // nil: each case's own
	Cases []Named // nil: all
}

// A Named is a case that the command line names.
type Named struct {
	Case  *cases.Case
	Sizes []int // nil: those of -size, or the case's own; not both may be given
}

// ParseSizes reads sizes with commas between them.
func ParseSizes(list string) ([]int, error) {
	var sizes []int
	for field := range strings.SplitSeq(list, ",") {
		size, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || size < 1 {
			return nil, cli.Usagef("size %q: sizes are whole numbers from 1, with commas between them", field)
		}
		if slices.Contains(sizes, size) {
			return nil, cli.Usagef("size %d is given twice in %s", size, list)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// String returns a case with sizes as the command line names it.
func (s Named) String() string {
	return s.Case.Name + ":" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Sizes), " ", ","), "[]")
}

// Parse reads cases, each with or without sizes, as put_bw:8,1024.
func Parse(args []string) ([]Named, error) {
	var selected []Named
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			return nil, cli.Usagef("%s: flags come before the cases", arg)
		}
		if cli.IsCommand(arg) {
			return nil, cli.Usagef("%s comes before the flags: bench %s [flags] …", arg, arg)
		}
		name, list, sized := strings.Cut(arg, ":")
		s := Named{Case: cases.ByName(name)}
		if s.Case == nil {
			return nil, cli.Usagef("there is no case %q; there are %s", name, strings.Join(cases.Names(), ", "))
		}
		if slices.ContainsFunc(selected, func(other Named) bool { return other.Case.Name == name }) {
			return nil, cli.Usagef("case %s is named twice; several sizes of it are asked for as %s:8,1024", name, name)
		}
		if sized {
			var err error
			if s.Sizes, err = ParseSizes(list); err != nil {
				return nil, err
			}
		}
		selected = append(selected, s)
	}
	return selected, nil
}
