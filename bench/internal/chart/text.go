package chart

import (
	"encoding/xml"
	"strings"
)

// boldFactor is the greatest ratio of the width of bold letters to that of others.
const boldFactor = 1.18

// textWidth returns an upper bound of the width of text in the default fonts of browsers, of which those like Verdana
// are the widest.
func textWidth(text string, size float64) float64 {
	width := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune(" .,:;'|/\\Iijl", r):
			width += 0.36
		case strings.ContainsRune("!()[]-frt", r):
			width += 0.44
		case strings.ContainsRune("cksvxyz", r):
			width += 0.63
		case r >= 'a' && r <= 'z' && r != 'm' && r != 'w', r >= '0' && r <= '9':
			width += 0.67
		case r >= 'A' && r <= 'Z' && r != 'M' && r != 'W', strings.ContainsRune("\"#$&*+<=>?^_`{}~", r):
			width += 0.88
		default:
			width += 1.05
		}
	}
	return width * size
}

// wrapped are the lines that text takes in a width: it goes on in a new one at a space, or where a word is too long for
// one line.
func wrapped(text string, width, size float64) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && textWidth(line+" "+word, size) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		for _, r := range word {
			if textWidth(line+string(r), size) > width {
				lines, line = append(lines, line), ""
			}
			line += string(r)
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// XMLText returns text with what XML reserves escaped.
func XMLText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
}
