package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is text from outside. As it is shown, what cannot be seen in it is replaced by what can, so that it neither hides
// anything nor turns the text around it; the template escapes it. Line breaks and tabs stay.
type Text string

// String is the text as it is shown.
func (t Text) String() string { return strings.Map(visible, strings.ToValidUTF8(string(t), "\uFFFD")) }

// visible is a letter that can be seen for one that cannot.
func visible(c rune) rune {
	switch {
	case c == '\n' || c == '\t', c == '\u200c' || c == '\u200d': // the latter two join letters, which some languages need
		return c
	case c < ' ': // the pictures of the control characters
		return '\u2400' + c
	case c == 0x7f:
		return '\u2421'
	case unicode.IsControl(c), unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp): // such as those that turn the direction of writing
		return '\uFFFD'
	default:
		return c
	}
}

const (
	// maxPayload is how much of a message a page shows, in bytes, and maxIndented how much indenting may make of it.
	maxPayload  = 64 << 10
	maxIndented = 4 * maxPayload
	// maxDepth is how deep a document may be for its lines to be indented: each level costs a letter in every line.
	maxDepth = 64
	// maxLine is how much of an error a list shows, in bytes.
	maxLine = 160
)

// Payload is a document as a page shows it.
type Payload struct {
	// Shown is its beginning, indented if it is JSON that can be.
	Shown Text
	// Size is that of the whole document, and Cut says that Shown is not all of it.
	Size int
	Cut  bool

	document string
}

// Tree is the document as a tree, nil if it is none that has members or elements.
func (p Payload) Tree() *treeNode { return treeOf(json.RawMessage(p.document)) }

// SizeText is the size for people.
func (p Payload) SizeText() string { return size(p.Size) }

// ShownSize is the size of what is shown.
func (p Payload) ShownSize() string { return size(maxPayload) }

func payloadOf(document string) Payload {
	p := Payload{Shown: Text(document), Size: len(document), document: document}
	if len(document) > maxPayload {
		p.Shown, p.Cut = Text(cut(document, maxPayload)), true
		return p
	}
	var indented bytes.Buffer // numbers stay as they came: nothing is decoded
	if depth(document) <= maxDepth && json.Indent(&indented, []byte(document), "", "  ") == nil && indented.Len() <= maxIndented {
		p.Shown = Text(indented.String())
	}
	return p
}

// depth is how deep the brackets of a document of JSON are nested, those in its strings included.
func depth(document string) (deepest int) {
	open := 0
	for _, c := range []byte(document) {
		switch c {
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		}
	}
	return deepest
}

// cut is the beginning of a text, of whole letters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// line is a text as a list shows it.
func line(t Text) Text {
	if short := cut(string(t), maxLine); len(short) < len(t) {
		return Text(short) + "…"
	}
	return t
}

// size is a number of bytes for people.
func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}
