// Package errtext composes the texts of errors that pass through several packages of this module, so that each says
// once which package it comes from, which rank it is of, and why.
//
// Such a text begins with a head: the name of a package, and for some errors the rank, each followed by a colon. An error
// in another one would repeat that, so whoever puts errors after a head of its own composes the text here. A text is that
// of an error less
//
//   - the name of a package that the head names, or of one below that;
//   - the rank that the head names;
//   - errors of an errors.Join that say what one before them says.
//
// The errors themselves stay as they are, for errors.Is and errors.As.
package errtext

import (
	"fmt"
	"slices"
	"strings"
)

// layers are the packages that begin their errors with their names, each with those below it before it.
var layers = []string{"reduce", "aggregate", "epoch", "world", "window"}

const colon = ": "

// Errorf is [fmt.Errorf] of a text that begins with a head, which the errors among the arguments do not repeat.
func Errorf(format string, arguments ...any) error {
	err := fmt.Errorf(format, arguments...)
	text, errs := err.Error(), within(err)
	own := text
	for _, e := range errs {
		own, _, _ = strings.Cut(own, e.Error())
	}
	head, _ := cut(own, nil)
	return &composed{err, replace(text, head, errs)}
}

// A composed error has another text than the one that it wraps.
type composed struct {
	error
	text string
}

func (e *composed) Error() string { return e.text }

// Unwrap returns the error as it was.
func (e *composed) Unwrap() error { return e.error }

// After returns head, such as "world: rank 2: ", and the text of err after it.
func After(head string, err error) string {
	named, _ := cut(head, nil)
	return head + replace(err.Error(), named, []error{err})
}

// Call returns how the text of an error in a call begins: with own and the call, or, of a call with a package's name as
// "window.Fence", with that package and the call.
func Call(own, call string) string {
	if name, unqualified, found := strings.Cut(call, "."); found && slices.Contains(layers, name) {
		own, call = name, unqualified
	}
	return own + colon + call
}

// replace returns text without what the errors in it repeat of head.
func replace(text string, head []string, errs []error) string {
	for i, err := range slices.Backward(errs) {
		was := err.Error()
		_, rest := cut(was, head)
		is := replace(rest, head, within(err))
		if slices.ContainsFunc(errs[:i], func(before error) bool { return before.Error() == was }) {
			was, is = "\n"+was, ""
		}
		text = replaceLast(text, was, is)
	}
	return text
}

// replaceLast replaces the last occurrence: a text ends with those of the errors in it, in their order.
func replaceLast(text, was, is string) string {
	at := strings.LastIndex(text, was)
	if at < 0 || was == "" {
		return text
	}
	return text[:at] + is + text[at+len(was):]
}

// cut returns the parts of the head that text begins with, and text less those that said has, or says by a package above.
func cut(text string, said []string) (head []string, rest string) {
	kept := ""
	for {
		part, after, found := strings.Cut(text, colon)
		if !found || !isHead(part) {
			return head, kept + text
		}
		head = append(head, part)
		if !repeats(part, said) {
			kept += part + colon
		}
		text = after
	}
}

// isHead reports whether a part of a text names a package or a rank.
func isHead(part string) bool {
	number, isRank := strings.CutPrefix(part, "rank ")
	return slices.Contains(layers, part) || isRank && number != "" && strings.Trim(number, "0123456789") == ""
}

// repeats reports whether part, of the head of an error, says what an error before it has said.
func repeats(part string, said []string) bool {
	layer := slices.Index(layers, part)
	return slices.ContainsFunc(said, func(before string) bool {
		return before == part || layer >= 0 && layer < slices.Index(layers, before)
	})
}

// within returns the errors that err wraps.
func within(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}
