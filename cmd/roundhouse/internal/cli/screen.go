package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/term"
)

// defaultWidth is that of a terminal that does not tell.
const defaultWidth = 80

// screen is what the program is connected to.
type screen struct {
	// asks says that somebody can be asked, draws that a line can be drawn again, width what a line of output may have; 0
	// does not bound it.
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

// descriptor is that of a terminal, -1 for anything else.
func descriptor(stream any) int {
	file, ok := stream.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return -1
	}
	return int(file.Fd())
}

// printable is a text for a terminal: what came from outside must not steer it.
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

// escapeUnprintable is a JSON text in which characters that could act on a terminal, which are in its strings only, are escaped.
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
