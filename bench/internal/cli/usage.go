package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUsage is the class of errors in the command line.
var ErrUsage = errors.New("wrong usage")

// A usageError says what is wrong with the command line and what is allowed.
type usageError struct{ text string }

func (e *usageError) Error() string { return "bench: " + e.text }
func (e *usageError) Unwrap() error { return ErrUsage }

// Usagef returns an error of the class ErrUsage.
func Usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// CheckNamed returns an error if a name after the flags is not known. kind says what the names are.
func CheckNamed(kind string, named, known []string) error {
	for i, name := range named {
		switch {
		case strings.HasPrefix(name, "-"):
			return Usagef("%s: flags come before the %ss", name, kind)
		case slices.Contains(named[:i], name):
			return Usagef("%s %s is named twice", kind, name)
		case !slices.Contains(known, name):
			return Usagef("there is no %s %q; there are %s", kind, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// ExitStatuses ends the help of each command.
const ExitStatuses = "\nexit status: 0; 1 if something failed or ended it early; 2 for wrong usage\n"

// CommandLine returns the command line as typed, as far as the program knows.
func CommandLine(args []string) string {
	words := []string{"go", "run", "./bench"}
	for _, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"\\$`*?[]{}()<>|&;#!~") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// Cause returns the text of err without the program's name, for a line that begins with another name.
func Cause(err error) string { return strings.TrimPrefix(err.Error(), "bench: ") }
