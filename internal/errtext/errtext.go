// Package errtext composes the texts of errors that pass through several packages of this module. Each text then
// names its package, its rank and its reason once.
//
// Such a text begins with a head: the name of a package, and for some errors the rank, each followed by a colon. An
// error within another would repeat the head. So a package that adds a head of its own composes the text here. The
// composed text is that of an error without
//
//   - the name of a package that stands before it, or of a package below that;
//   - the rank that stands before it, alone or in a clause as in "rank 2 has failed: ";
//   - the class that stands directly before it, such as "invalid environment: ", if more follows;
//   - errors of an errors.Join that repeat an earlier one.
//
// The errors themselves do not change, for errors.Is and errors.As.
package errtext

import (
	"fmt"
	"slices"
	"strings"
)

// layers are the packages that begin their errors with their names. Each stands after the packages below it.
var layers = []string{"verbs", "proof", "reduce", "aggregate", "epoch", "world", "window"}

const (
	colon = ": "
	after = ", after "
)

// Errorf is like [fmt.Errorf], for a text that begins with a head. The errors among the arguments do not repeat the
// head.
func Errorf(format string, arguments ...any) error {
	err := fmt.Errorf(format, arguments...)
	text, errs := err.Error(), within(err)
	own := text
	for _, e := range slices.Backward(errs) {
		if at, _, _ := find(own, nil, e); at >= 0 {
			own = own[:at]
		}
	}
	return &composed{err, replace(text, named(own), errs)}
}

// A composed error has another text than the error that it wraps.
type composed struct {
	error
	text string
}

func (e *composed) Error() string { return e.text }

// Unwrap returns the original error.
func (e *composed) Unwrap() error { return e.error }

// After returns head, such as "world: rank 2: " or "world: rank 2 has failed: ", followed by the text of err, or by
// <nil> if err is nil.
func After(head string, err error) string {
	if err == nil {
		return head + "<nil>"
	}
	return head + trim(err, named(head))
}

// Call returns the head of an error of a call. For a call with a package's name, such as "window.Fence", the head is
// that package and the call. Otherwise it is own and the call.
func Call(own, call string) string {
	if name, unqualified, found := strings.Cut(call, "."); found && slices.Contains(layers, name) {
		own, call = name, unqualified
	}
	return own + colon + call
}

// trim returns the text of err without the parts that repeat said.
func trim(err error, said []string) string {
	text, kept := replace(err.Error(), said, within(err)), ""
	for {
		part, rest, found := strings.Cut(text, colon)
		if !found || !isHead(part) {
			return kept + text
		}
		if !repeats(part, said) {
			kept += part + colon
		}
		text = rest
	}
}

// Under returns err with head in place of below, the head that a lower package has given it.
func Under(head, below string, err error) error {
	return &composed{err, head + strings.TrimPrefix(err.Error(), below)}
}

// replace returns text, the text of an error that wraps errs. The texts of errs lose the parts that repeat said.
func replace(text string, said []string, errs []error) string {
	own, end := named(text), len(text)
	for i, err := range slices.Backward(errs) {
		at, was, by := find(text[:end], own, err)
		if at < 0 {
			continue
		}
		is, rest := trimClass(text[:at], trim(err, slices.Concat(by, said))), text[at+len(was):]
		again := slices.ContainsFunc(errs[:i], func(before error) bool { return before.Error() == err.Error() })
		if line, joined := strings.CutSuffix(text[:at], "\n"); again && joined {
			is, at = "", len(line)
		}
		text, end = text[:at]+is+rest, at
	}
	return text
}

// trimClass removes the class at the beginning of text, and the package before that. It does so if before ends with
// the class and more follows. A class has several words; a single word is a call.
func trimClass(before, text string) string {
	own := text
	if name, rest, _ := strings.Cut(text, colon); !strings.Contains(name, " ") {
		own = rest
	}
	for _, text := range []string{text, own} {
		class, rest, more := strings.Cut(text, colon)
		if before, ends := strings.CutSuffix(before, class+colon); more && ends && strings.Contains(class, " ") && (before == "" || strings.HasSuffix(before, " ")) {
			return rest
		}
	}
	return text
}

// find returns the position of err's text in text, as it stands there. text may end with it or continue. err's text
// may stand there whole or without the names by, which text itself has before it. at is -1 if it is not found.
func find(text string, own []string, err error) (at int, was string, by []string) {
	was = err.Error()
	at = strings.LastIndex(text, was)
	for n := 0; at < 0 && n <= len(own); n++ {
		by = own[:n]
		was = trim(err, by)
		at = strings.LastIndex(text, was)
	}
	return at, was, by
}

// named returns the packages and ranks that stand before a colon of text. These are the ones of heads, and the rank
// with which a sentence or its last clause begins, as in "rank 2 has failed: " and "closed, after rank 2 had failed:
// ".
func named(text string) (names []string) {
	parts := strings.Split(text, colon)
	for _, part := range parts[:len(parts)-1] {
		clause := part[strings.LastIndex(part, after)+1:]
		words := strings.SplitN(strings.TrimPrefix(clause, after[1:]), " ", 3)
		if name := strings.Join(words[:min(len(words), 2)], " "); isHead(part) || isRank(name) {
			names = append(names, name)
		}
	}
	return names
}

// isHead reports whether a part of a text names a package or a rank.
func isHead(part string) bool { return slices.Contains(layers, part) || isRank(part) }

func isRank(text string) bool {
	number, found := strings.CutPrefix(text, "rank ")
	return found && number != "" && strings.Trim(number, "0123456789") == ""
}

// repeats reports whether part, of the head of an error, repeats what an earlier error has said.
func repeats(part string, said []string) bool {
	layer := slices.Index(layers, part)
	return slices.ContainsFunc(said, func(before string) bool {
		return before == part || layer >= 0 && layer < slices.Index(layers, before)
	})
}

// within returns the errors that stand in the text of err.
func within(err error) []error {
	switch e := err.(type) {
	case *composed:
		return within(e.error)
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}
