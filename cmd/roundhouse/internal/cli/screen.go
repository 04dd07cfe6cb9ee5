package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/term"
)

// defaultWidth is the width of a terminal that reports none.
const defaultWidth = 80

// screen describes the program's terminal.
type screen struct {
	// asks means that the operator can be asked, draws that a line can be redrawn; width bounds a line of output, 0
	// does not.
	asks, draws bool
	width       int
}

func screenOf(in io.Reader, out, errs io.Writer) screen {
	s := screen{asks: descriptor(in) >= 0 && descriptor(errs) >= 0, draws: descriptor(errs) >= 0}
	if fd := descriptor(out); fd >= 0 {
		s.width = defaultWidth
		if width, _, err := term.GetSize(fd); err == nil && width > 0 {
			s.width = width
		}
	}
	return s
}

// descriptor returns the file descriptor of a terminal, -1 for anything else.
func descriptor(stream any) int {
	file, ok := stream.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return -1
	}
	return int(file.Fd())
}

// printable returns a text for a terminal: external text must not control it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// escapeUnprintable escapes the characters of a JSON text that could control a terminal. They are in its strings
// only.
func escapeUnprintable(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || unicode.IsPrint(r): // strings have no line ends
			out.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// block is printable for a text of several lines.
func block(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		lines[i] = line[:indent] + printable(line[indent:])
	}
	return strings.Join(lines, "\n")
}
