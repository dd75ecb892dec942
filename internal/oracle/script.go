package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/window"
)

// ErrScript reports a text that is not the script of a program.
var ErrScript = errors.New("not the script of a program")

var modeNames = [modes]string{"idle", "fence", "start", "lock", "lockall"}

func (m Mode) String() string { return modeNames[m] }

// String returns the program as a script, a line for each window, synchronization and step. Parse reads it.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ranks %d\n", p.Ranks)
	for i := range p.Windows {
		w := &p.Windows[i]
		fmt.Fprintf(&b, "window %v counts=%s%s%s%s%s%s%s", w.Kind, list(w.Counts), flag(w.Create, "create"), flag(w.SingleElement, "singleelement"),
			flag(w.SameOp, "sameop"), flag(w.Unordered, "unordered"), flag(w.Immediate, "immediate"), flag(w.CardAtomics, "cardatomics"))
		if w.Slots != 0 {
			fmt.Fprintf(&b, " slots=%d", w.Slots)
		}
		b.WriteByte('\n')
	}
	for i := range p.Phases {
		f := &p.Phases[i]
		fmt.Fprintf(&b, "phase%s%s\n", flag(f.Loose, "loose"), flag(f.Hasty, "hasty"))
		for j := range f.Syncs {
			if y := &f.Syncs[j]; y.Mode != Idle {
				fmt.Fprintf(&b, "sync w%d %v\n", j, y)
			}
		}
		for j := range f.Steps {
			fmt.Fprintln(&b, &f.Steps[j])
		}
	}
	return b.String()
}

func flag(set bool, name string) string {
	if set {
		return " " + name
	}
	return ""
}

func list(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

func (y *Sync) String() string {
	var b strings.Builder
	b.WriteString(y.Mode.String())
	b.WriteString(flag(y.NoPrecede, "noprecede") + flag(y.NoSucceed, "nosucceed") + flag(y.Assert, "assert") + flag(y.Test, "test"))
	for rank, targets := range y.Targets {
		if targets != nil {
			fmt.Fprintf(&b, " %d>%s", rank, list(targets))
		}
	}
	return b.String()
}

func (s *Shape) String() string {
	if s.Index == nil {
		return fmt.Sprintf("%dx%d/%d", s.Blocks, s.Length, s.Stride)
	}
	texts := make([]string, len(s.Index))
	for i, block := range s.Index {
		texts[i] = fmt.Sprintf("%d+%d", block.Offset, block.Length)
	}
	return strings.Join(texts, ",")
}

func (s *Step) String() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(s.Rank))
	if s.Member != 0 {
		fmt.Fprintf(&b, ".%d", s.Member)
	}
	b.WriteString(flag(s.Refused, "refused"))
	fmt.Fprintf(&b, " %v w%d", s.Call, s.Window)
	number := func(name string, value int64) {
		if value != 0 {
			fmt.Fprintf(&b, " %s=%d", name, value)
		}
	}
	if s.Call.Operates() || s.Call == Store || s.Call == Load || s.Call == View {
		fmt.Fprintf(&b, " %v", s.Kind)
	}
	if s.Call.combines() && s.Call != CompareAndSwap {
		fmt.Fprintf(&b, " op=%s", opName(s.Op))
	}
	if s.Call.Operates() || s.Call == Flush || s.Call == FlushLocal || s.Call == RFlush || s.Call == Lock || s.Call == Unlock {
		fmt.Fprintf(&b, " on=%d", s.Target)
	}
	number("at", int64(s.At))
	number("n", int64(s.Count))
	number("fill", s.Fill)
	number("compare", s.Compare)
	if s.Call.layouts() {
		fmt.Fprintf(&b, " from=%v to=%v", &s.From, &s.To)
	}
	number("slot", int64(s.Slot))
	number("request", int64(s.Request))
	switch {
	case s.LockKind == window.Shared:
		b.WriteString(" shared")
	case s.LockKind == window.Exclusive:
		b.WriteString(" exclusive")
	default:
		number("kind", int64(s.LockKind))
	}
	b.WriteString(flag(s.Nil, "nil"))
	number("assert", int64(s.Assert))
	if s.Ranks != nil {
		fmt.Fprintf(&b, " ranks=%s", list(s.Ranks))
	}
	return b.String()
}

func opName(op window.Op) string {
	if op <= window.NoOp {
		return strings.ToLower(op.String())
	}
	return strconv.Itoa(int(op))
}

// Parse reads a script. Empty lines, and text after a #, are ignored. The program has passed Check.
func Parse(text string) (*Program, error) {
	p := &Program{}
	at := 0
	for line := range strings.Lines(text) {
		at++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := p.parseLine(words); err != nil {
			return nil, fmt.Errorf("oracle: %w: line %d: %q: %w", ErrScript, at, strings.Join(words, " "), err)
		}
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Program) parseLine(words []string) error {
	switch words[0] {
	case "ranks":
		if len(words) != 2 {
			return errors.New("want ranks N")
		}
		return set(&p.Ranks, words[1])
	case "window":
		p.Windows = append(p.Windows, Window{})
		return p.Windows[len(p.Windows)-1].parse(words[1:])
	}
	if words[0] == "phase" {
		p.Phases = append(p.Phases, Phase{Syncs: make([]Sync, len(p.Windows))})
	} else if len(p.Phases) == 0 {
		return errors.New("no phase has begun; lines begin with ranks, window and phase")
	}
	f := &p.Phases[len(p.Phases)-1]
	switch words[0] {
	case "phase":
		return flags(words[1:], map[string]*bool{"loose": &f.Loose, "hasty": &f.Hasty})
	case "sync":
		if len(words) < 3 {
			return errors.New("want sync wN MODE")
		}
		n, err := windowOf(words[1], len(f.Syncs))
		if err != nil {
			return err
		}
		return f.Syncs[n].parse(p.Ranks, words[2:])
	}
	f.Steps = append(f.Steps, Step{})
	return f.Steps[len(f.Steps)-1].parse(words, len(f.Syncs))
}

func set[T ~int | ~int64 | ~uint8](to *T, text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	*to = T(v)
	if err == nil && int64(*to) != v {
		return fmt.Errorf("%s is out of range", text)
	}
	return err
}

func flags(words []string, known map[string]*bool) error {
	for _, word := range words {
		to, ok := known[word]
		if !ok {
			return fmt.Errorf("%q is unknown", word)
		}
		*to = true
	}
	return nil
}

func windowOf(word string, windows int) (n int, err error) {
	number, ok := strings.CutPrefix(word, "w")
	if !ok {
		return 0, fmt.Errorf("%q is no window; windows are w0, w1, …", word)
	}
	if err := set(&n, number); err != nil {
		return 0, err
	}
	if n < 0 || n >= windows {
		return 0, fmt.Errorf("there are %d windows before the phase", windows)
	}
	return n, nil
}

func kindOf(word string) (reduce.Kind, error) {
	for kind := range reduce.Kinds {
		if kind.String() == word {
			return kind, nil
		}
	}
	return 0, fmt.Errorf("%q is no element type", word)
}

func numbers(text string) ([]int, error) {
	list := []int{}
	if text == "" {
		return list, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		var n int
		if err := set(&n, word); err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

func (w *Window) parse(words []string) (err error) {
	if len(words) < 2 {
		return errors.New("want window TYPE counts=N,…")
	}
	if w.Kind, err = kindOf(words[0]); err != nil {
		return err
	}
	known := map[string]*bool{"create": &w.Create, "singleelement": &w.SingleElement, "sameop": &w.SameOp, "unordered": &w.Unordered, "immediate": &w.Immediate, "cardatomics": &w.CardAtomics}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "counts":
			w.Counts, err = numbers(value)
		case "slots":
			err = set(&w.Slots, value)
		default:
			err = flags([]string{word}, known)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (y *Sync) parse(ranks int, words []string) error {
	mode := slices.Index(modeNames[:], words[0])
	if mode < 0 {
		return fmt.Errorf("%q is no mode; modes are %s", words[0], strings.Join(modeNames[:], ", "))
	}
	y.Mode = Mode(mode)
	if y.Mode == Started {
		y.Targets = make([][]int, ranks)
	}
	known := map[string]*bool{"noprecede": &y.NoPrecede, "nosucceed": &y.NoSucceed, "assert": &y.Assert, "test": &y.Test}
	for _, word := range words[1:] {
		origin, targets, grouped := strings.Cut(word, ">")
		if !grouped {
			if err := flags([]string{word}, known); err != nil {
				return err
			}
			continue
		}
		var rank int
		if err := set(&rank, origin); err != nil {
			return err
		}
		if rank < 0 || rank >= len(y.Targets) {
			return fmt.Errorf("rank %d starts nothing here", rank)
		}
		group, err := numbers(targets)
		if err != nil {
			return err
		}
		y.Targets[rank] = group
	}
	return nil
}

func (s *Shape) parse(text string) error {
	if strings.Contains(text, "x") {
		*s = Shape{}
		_, err := fmt.Sscanf(text, "%dx%d/%d", &s.Blocks, &s.Length, &s.Stride)
		return err
	}
	s.Index = []window.Block{}
	for word := range strings.SplitSeq(text, ",") {
		var block window.Block
		if _, err := fmt.Sscanf(word, "%d+%d", &block.Offset, &block.Length); err != nil {
			return err
		}
		s.Index = append(s.Index, block)
	}
	return nil
}

func (s *Step) parse(words []string, windows int) (err error) {
	rank, member, _ := strings.Cut(words[0], ".")
	if err := set(&s.Rank, rank); err != nil {
		return err
	}
	if member != "" {
		if err := set(&s.Member, member); err != nil {
			return err
		}
	}
	words = words[1:]
	if len(words) > 0 && words[0] == "refused" {
		s.Refused = true
		words = words[1:]
	}
	if len(words) < 2 {
		return errors.New("want RANK [refused] CALL wN …")
	}
	call := slices.Index(callNames[:], words[0])
	if call < 0 {
		return fmt.Errorf("%q is no call; calls are %s", words[0], strings.Join(callNames[:], ", "))
	}
	s.Call = Call(call)
	if s.Window, err = windowOf(words[1], windows); err != nil {
		return err
	}
	for _, word := range words[2:] {
		if err := s.parseField(word); err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) parseField(word string) (err error) {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "op":
		return s.parseOp(value)
	case "on":
		return set(&s.Target, value)
	case "at":
		return set(&s.At, value)
	case "n":
		return set(&s.Count, value)
	case "fill":
		return set(&s.Fill, value)
	case "compare":
		return set(&s.Compare, value)
	case "from":
		return s.From.parse(value)
	case "to":
		return s.To.parse(value)
	case "slot":
		return set(&s.Slot, value)
	case "request":
		return set(&s.Request, value)
	case "kind":
		return set(&s.LockKind, value)
	case "shared":
		s.LockKind = window.Shared
	case "exclusive":
		s.LockKind = window.Exclusive
	case "nil":
		s.Nil = true
	case "assert":
		return set(&s.Assert, value)
	case "ranks":
		s.Ranks, err = numbers(value)
	default:
		s.Kind, err = kindOf(word)
	}
	return err
}

func (s *Step) parseOp(text string) error {
	for op := window.Sum; op <= window.NoOp; op++ {
		if opName(op) == text {
			s.Op = op
			return nil
		}
	}
	return set(&s.Op, text)
}
