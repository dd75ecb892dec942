package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
)

// A line is a total and the name of what it counts, in singular and plural.
type line struct {
	number    uint64
	one, many string
	// rare lines are left out if the number is 0.
	rare bool
}

func (l *line) name() string { return plural(l.number, l.one, l.many) }

// plural returns one or many, as fits n.
func plural(n uint64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// printResult prints the words, which are some of those counted, and the totals.
func printResult(to io.Writer, words []wordCount, t totals, other uint64) error {
	out := bufio.NewWriter(to)
	if len(words) > 0 {
		width := max(len("count"), digits(words[0].count))
		fmt.Fprintf(out, "%*s   share  word\n", width, "count")
		for _, word := range words {
			fmt.Fprintf(out, "%*d %6.2f%%  %s\n", width, word.count, 100*float64(word.count)/float64(t.Words), word.word)
		}
		fmt.Fprintln(out)
	}
	overlong := fmt.Sprintf("of more than %d bytes, not counted", longestWord)
	lines := []line{
		{t.Files, "file", "files", false},
		{t.Bytes, "byte", "bytes", false},
		{t.Words, "word", "words", false},
		{t.Distinct, "different word", "different words", false},
		{t.Overlong, "word " + overlong, "words " + overlong, true},
		{t.Binary, "binary file, not counted", "binary files, not counted", true},
		{other, "link, device or the like, not counted", "links, devices and the like, not counted", true},
		{t.Unreadable, "file or directory not readable, named above", "files and directories not readable, named above", true},
		{t.Shorter, "file that became shorter, named above", "files that became shorter, named above", true},
	}
	width := 0
	for _, l := range lines {
		width = max(width, digits(l.number))
	}
	for _, l := range lines {
		if l.number > 0 || !l.rare {
			fmt.Fprintf(out, "%*d %s\n", width, l.number, l.name())
		}
	}
	return out.Flush()
}

func digits(n uint64) int { return len(strconv.FormatUint(n, 10)) }

// rate formats a number per second.
func rate(n uint64, elapsed time.Duration) string {
	perSecond := float64(n) / max(elapsed.Seconds(), 1e-9)
	switch {
	case perSecond >= 1e6:
		return fmt.Sprintf("%.1f million", perSecond/1e6)
	case perSecond >= 1e3:
		return fmt.Sprintf("%.1f thousand", perSecond/1e3)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// round rounds a duration to a few digits.
func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}

// size formats a number of bytes in a few digits.
func size(bytes uint64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value, prefixes := float64(bytes)/unit, "KMGTPE"
	for value >= unit {
		value, prefixes = value/unit, prefixes[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, prefixes[0])
}
