package docs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/vibedata/roundhouse/internal/testenv"
)

const root = "../.."

// page is one document.
type page struct {
	// path is relative to the repository, with slashes.
	path   string
	blocks []block
	links  []string
	// spans are the code spans of the text.
	spans []string
	// anchors are the targets of links after the '#'.
	anchors map[string]bool
}

// block is a fenced block of a page.
type block struct {
	page string
	line int
	// section is the last second-level heading before the block.
	section string
	// named is the bold text on its own line before the block, "" without one.
	named string
	// language is the first word after the fence, words are the others.
	language string
	words    []string
	text     string
}

// pages reads all documents: those at the root of the repository and those below docs/.
func pages(t *testing.T) []page {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d documents, %v", len(paths), err)
	}
	var all []page
	for _, path := range paths {
		source := testenv.Must(os.ReadFile(path))(t)
		relative := testenv.Must(filepath.Rel(root, path))(t)
		all = append(all, parse(filepath.ToSlash(relative), source))
	}
	return all
}

// parse reads one document.
func parse(path string, source []byte) page {
	p := page{path: path, anchors: map[string]bool{}}
	document := goldmark.DefaultParser().Parse(text.NewReader(source))
	section := ""
	// The walk fails only if the function returns an error.
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.FencedCodeBlock:
			b := newBlock(path, source, n)
			b.section = section
			p.blocks = append(p.blocks, b)
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.CodeSpan:
			p.spans = append(p.spans, plain(source, n))
		case *ast.Heading:
			if n.Level == 2 {
				section = plain(source, n)
			}
			p.anchors[p.newAnchor(plain(source, n))] = true
		}
		return ast.WalkContinue, nil
	})
	return p
}

func newBlock(path string, source []byte, n *ast.FencedCodeBlock) block {
	b := block{page: path, named: boldBefore(source, n)}
	if n.Info != nil {
		if words := strings.Fields(string(n.Info.Value(source))); len(words) > 0 {
			b.language, b.words = words[0], words[1:]
		}
	}
	var lines bytes.Buffer
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		if i == 0 {
			b.line = 1 + bytes.Count(source[:segment.Start], []byte("\n"))
		}
		lines.Write(segment.Value(source))
	}
	b.text = lines.String()
	return b
}

// boldBefore returns the text of the paragraph before a block, if all of it is bold.
func boldBefore(source []byte, n *ast.FencedCodeBlock) string {
	paragraph, ok := n.PreviousSibling().(*ast.Paragraph)
	if !ok || paragraph.ChildCount() != 1 {
		return ""
	}
	if bold, ok := paragraph.FirstChild().(*ast.Emphasis); ok && bold.Level == 2 {
		return plain(source, bold)
	}
	return ""
}

// plain returns the text of a node without its mark-up.
func plain(source []byte, n ast.Node) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			out.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// dropped matches the characters that an anchor omits.
var dropped = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)

// newAnchor returns the anchor that GitHub gives to a heading; those of equal headings are numbered.
func (p page) newAnchor(heading string) string {
	anchor := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
	name := anchor
	for n := 1; p.anchors[name]; n++ {
		name = anchor + "-" + strconv.Itoa(n)
	}
	return name
}

// blocksOf returns the blocks of all pages in a language.
func blocksOf(t *testing.T, language string) []block {
	t.Helper()
	var found []block
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language == language {
				found = append(found, b)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no block is in the language %s", language)
	}
	return found
}
