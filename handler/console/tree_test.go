package console

import (
	"fmt"
	"strings"
	"testing"
)

// sketch is a tree in one line.
func sketch(n *treeNode) string {
	if n == nil {
		return "none"
	}
	if n.Kind == "" {
		return string(n.Name) + "=" + string(n.Value)
	}
	var all []string
	for _, c := range n.Children {
		all = append(all, sketch(c))
	}
	if n.Left > 0 {
		all = append(all, fmt.Sprintf("+%d", n.Left))
	}
	return string(n.Name) + "(" + strings.Join(all, " ") + ")"
}

// A tree has what a document has: numbers and texts as they came, in their order, and what is there twice, twice.
func TestTree(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"b": 123456789012345678901234567890, "a": [1.10, "x\u202ey", null], "b": {}}`: `(b=123456789012345678901234567890 a(0=1.10 1="x\u202ey" 2=null) b())`,
		` [true] `: `(0=true)`,
		``:         "none", `7`: "none", `"{}"`: "none", `{`: "none", `{"a": 1} x`: "none",
		`{"n": "` + strings.Repeat("é", maxLeaf) + `"}`: `(n="` + strings.Repeat("é", maxLeaf/2-1) + `…)`,
	} {
		if got := sketch(treeOf([]byte(document))); got != want {
			t.Errorf("%.60s: %s, want %s", document, got, want)
		}
	}
}

// A tree has limits, and says what it leaves out.
func TestTreeIsBounded(t *testing.T) {
	t.Parallel()
	wide := treeOf([]byte(`[` + strings.TrimSuffix(strings.Repeat(`1,`, maxTreeNodes+99), ",") + `]`))
	if len(wide.Children) != maxTreeNodes-1 || wide.Left != 100 || wide.Count() != "499 elements" || wide.Open {
		t.Errorf("%d children, %d left, %s, open %v", len(wide.Children), wide.Left, wide.Count(), wide.Open)
	}
	deep := treeOf([]byte(strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)))
	levels := 0
	for n := deep; len(n.Children) > 0; n = n.Children[0] {
		levels++
	}
	if levels != maxTreeDepth {
		t.Errorf("%d levels", levels)
	}
	if one := treeOf([]byte(`{"a": [2]}`)); one.Count() != "1 member" || !one.Open || !one.Children[0].Open || one.Children[0].Count() != "1 element" {
		t.Errorf("%+v", one)
	}
}
