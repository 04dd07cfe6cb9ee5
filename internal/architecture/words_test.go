package architecture

import (
	_ "embed" // the budgets
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// wordList holds the budgets of TestPlainWords; its first lines describe it.
//
//go:embed words.txt
var wordList string

var updateWords = flag.Bool("update", false, "write words.txt")

var codeBlock = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// hidingWords counts the words of a text that hide the subject of a sentence.
func hidingWords(text string) (n int) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		switch strings.ToLower(word) {
		case "what", "who", "whoever", "whatever", "whose", "whom", "somebody", "nobody", "tell", "tells", "told":
			n++
		}
	}
	return n
}

// TestPlainWords holds comments, texts and documents to the words of users and operators: a sentence starts with the thing that acts. Words
// that hide it have a budget for each folder or page, which may only shrink.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	got, want := countWords(t), map[string]int{}
	var head []string
	for n, line := range strings.Split(strings.TrimSpace(wordList), "\n") {
		place, number, ok := strings.Cut(line, " = ")
		if !ok {
			head = append(head, line)
			continue
		}
		budget, err := strconv.Atoi(number)
		if err != nil || budget < 1 {
			t.Errorf("words.txt, line %d: %q is no budget", n+1, line)
		}
		want[place] = budget
	}
	if *updateWords {
		lines := head
		for _, place := range slices.Sorted(maps.Keys(got)) {
			lines = append(lines, fmt.Sprintf("%s = %d", place, got[place]))
		}
		if err := os.WriteFile("words.txt", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("words that hide the subject of a sentence (-budget +count); rewrite sentences, or lower budgets with\n"+
			"go test ./internal/architecture -run '^TestPlainWords$' -update\n%s", diff)
	}
}

// countWords counts by place: comments and texts of a folder, and pages.
func countWords(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	add := func(place, text string) {
		if n := hidingWords(text); n > 0 {
			counts[place] += n
		}
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, file)
		switch base := d.Name(); {
		case d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || base == "dist" || base == "bin"):
			return filepath.SkipDir
		case d.IsDir():
		case strings.HasSuffix(base, ".md"):
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			add(filepath.ToSlash(name), codeBlock.ReplaceAllString(string(text), ""))
		case strings.HasSuffix(base, ".go"):
			return countGo(file, filepath.ToSlash(filepath.Dir(name)), add)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// countGo counts in a Go file. The texts of tests do not count.
func countGo(file, folder string, add func(place, text string)) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, c := range parsed.Comments {
		add(folder+" comments", c.Text())
	}
	if strings.HasSuffix(file, "_test.go") {
		return nil
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, " ") {
			add(folder+" texts", text.Value)
		}
		return true
	})
	return nil
}
