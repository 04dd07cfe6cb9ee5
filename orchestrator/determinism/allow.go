package determinism

import (
	"go/ast"
	"go/token"
	"strings"
)

const allowPrefix = "//determinism:allow"

// place is a line of a file.
type place struct {
	file string
	line int
}

// allowance is a comment that allows the findings of its line.
type allowance struct {
	comment *ast.Comment
	reason  string // without a reason, it allows nothing
	used    bool
}

func allowances(fset *token.FileSet, files []*ast.File) map[place]*allowance {
	all := map[place]*allowance{}
	for _, file := range files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				rest, ok := strings.CutPrefix(c.Text, allowPrefix)
				if !ok || (rest != "" && !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "\t")) {
					continue
				}
				reason, _, _ := strings.Cut(rest, "//") // a nested comment is no reason
				all[placeOf(fset, c.Pos())] = &allowance{comment: c, reason: strings.TrimSpace(reason)}
			}
		}
	}
	return all
}

// placeOf returns the line of a position, and ignores //line comments: the author sees the real lines.
func placeOf(fset *token.FileSet, pos token.Pos) place {
	p := fset.PositionFor(pos, false)
	return place{p.Filename, p.Line}
}

func (f finding) allowed() bool { return f.allowance != nil && f.allowance.reason != "" }
