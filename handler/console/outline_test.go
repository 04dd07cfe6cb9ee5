package console

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// outline returns a page without markup: a line for each heading, paragraph, item and row, with links, inputs and
// buttons. A page with missing data has other lines.
func outline(t *testing.T, page string) []string {
	t.Helper()
	var o outliner
	o.walk(parsed(t, page))
	o.end()
	return o.lines
}

// parsed returns a page as a browser parses it.
func parsed(t *testing.T, page string) *html.Node {
	t.Helper()
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// outliner writes an outline. The contents of a folded element are one line.
type outliner struct {
	lines  []string
	line   strings.Builder
	folded int
}

var (
	// skipped are parts that all pages share, and blocks have their own lines.
	skipped = strings.Fields("head header footer script dialog")
	blocks  = strings.Fields("body h1 h2 h3 p li dt tr pre label form select summary legend div table ul dl section details g svg main")
	// around is the text before and after elements, and said are the meaningful attributes and classes.
	around = map[string][2]string{"a": {"[", "]"}, "button": {"{", "}"}, "option": {"{", "}"}, "input": {"{", "}"}, "textarea": {"{", "}"}, "select": {"{", "}"}, "td": {"", "|"}, "th": {"", "|"}, "dt": {"", ":"},
		"h1": {"# ", ""}, "h2": {"## ", ""}, "h3": {"### ", ""}, "li": {"* ", ""}, "pre": {"> ", ""}, "rect": {"rect", ""}, "polygon": {"polygon", ""}, "line": {"line", ""}}
	said = strings.Fields("action method enctype name value selected checked disabled required hidden maxlength inputmode accept open x y x1 x2 y1 y2 points" +
		" data-every data-follow data-status data-key aria-current aria-describedby aria-invalid aria-live" +
		" role=alert role=status class=bad class=good class=failed class=running class=added class=removed class=now class=wrong class=late class=unknown")
	// shorter abbreviates malicious data, which hostile pages have many times.
	shorter = strings.NewReplacer(evil, "EVIL", strings.Join(strings.Fields(Text(turning).String()), " "), "TURNING")
)

// end ends a line.
func (o *outliner) end() {
	if o.folded > 0 {
		return
	}
	if text := strings.Join(strings.Fields(o.line.String()), " "); text != "" && text != "*" {
		o.lines = append(o.lines, shorter.Replace(text))
	}
	o.line.Reset()
}

// say writes words as a separate text.
func (o *outliner) say(words ...string) {
	if text := strings.Join(words, " "); text != "" {
		o.line.WriteString(" " + text + " ")
	}
}

func (o *outliner) walk(n *html.Node) {
	element := n.Type == html.ElementNode
	if n.Type == html.TextNode {
		o.line.WriteString(n.Data)
	}
	if element && (slices.Contains(skipped, n.Data) || n.Data == "a" && n.Parent.Data == "body") {
		return
	}
	block := element && slices.Contains(blocks, n.Data)
	if block {
		o.end()
	}
	fold := attribute(n, "class") == "elsewhere" || n.Data == "table" && n.Parent.Data == "details"
	if fold {
		o.folded++
	}
	o.say(around[n.Data][0])
	for _, a := range n.Attr {
		if slices.Contains(said, a.Key) {
			o.say(strings.TrimSuffix(a.Key+"="+a.Val, "="))
		}
		for word := range strings.FieldsSeq(a.Val) {
			if slices.Contains(said, a.Key+"="+word) {
				o.say(word)
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		o.walk(c)
	}
	if href := attribute(n, "href"); href != "" {
		o.say("->", href)
	}
	o.say(around[n.Data][1])
	if fold {
		o.folded--
	}
	if block && n.Data != "dt" {
		o.end()
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
