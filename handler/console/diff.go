package console

import "strings"

const (
	// maxDiffCells bounds the cost of comparing two texts line by line: the differing lines of one, times those of the
	// other.
	maxDiffCells = 1 << 20
	// diffContext is the number of equal lines around differing ones.
	diffContext = 3
)

// diff is the list of changes from one text's lines to another's.
type diff struct {
	Lines []diffLine
	// Changed means that something differs, and Coarse that too much differs for a comparison line by line: then all of
	// one text is removed, and all of the other added.
	Changed, Coarse bool
}

// diffLine is a line of a diff.
type diffLine struct {
	// Kind is same, removed, added or left (out).
	Kind string
	// Old and New are the numbers of the line in the two texts, 0 where it is missing. Skipped is the number of omitted
	// lines.
	Old, New, Skipped int
	Text              Text
}

// Sign returns the sign before the line.
func (l diffLine) Sign() string {
	return map[string]string{"removed": "−", "added": "+"}[l.Kind]
}

// diffOf compares two texts line by line.
func diffOf(before, after string) diff {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	d := diff{Changed: before != after}
	add := func(kind string, i, j int) {
		l := diffLine{Kind: kind}
		if kind != "added" {
			l.Old, l.Text = i+1, Text(a[i])
		}
		if kind != "removed" {
			l.New, l.Text = j+1, Text(b[j])
		}
		d.Lines = append(d.Lines, l)
	}
	for i := range start {
		add("same", i, i)
	}
	from, to := a[start:len(a)-end], b[start:len(b)-end]
	d.Coarse = len(from)*len(to) > maxDiffCells
	for _, s := range steps(from, to, d.Coarse) {
		add(s.kind, start+s.i, start+s.j)
	}
	for n := range end {
		add("same", len(a)-end+n, len(b)-end+n)
	}
	d.Lines = folded(d.Lines)
	return d
}

// step is a step from one text to another: the change at line i of the first, and j of the second.
type step struct {
	kind string
	i, j int
}

// steps returns the shortest way from one text to another, by their longest common subsequence; a coarse one removes
// all and adds all.
func steps(from, to []string, coarse bool) (way []step) {
	var common [][]int32 // common[i][j] is the number of common lines of the rests from i and from j
	if !coarse {
		common = make([][]int32, len(from)+1)
		for i := range common {
			common[i] = make([]int32, len(to)+1)
		}
		for i := len(from) - 1; i >= 0; i-- {
			for j := len(to) - 1; j >= 0; j-- {
				if common[i][j] = max(common[i+1][j], common[i][j+1]); from[i] == to[j] {
					common[i][j] = common[i+1][j+1] + 1
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		switch {
		case i == len(from):
			way, j = append(way, step{"added", i, j}), j+1
		case j == len(to) || coarse:
			way, i = append(way, step{"removed", i, j}), i+1
		case from[i] == to[j]:
			way, i, j = append(way, step{"same", i, j}), i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			way, i = append(way, step{"removed", i, j}), i+1
		default:
			way, j = append(way, step{"added", i, j}), j+1
		}
	}
	return way
}

// folded omits equal lines far from differing ones.
func folded(lines []diffLine) (out []diffLine) {
	near := make([]bool, len(lines))
	for n, l := range lines {
		if l.Kind != "same" {
			for m := max(0, n-diffContext); m < min(len(lines), n+diffContext+1); m++ {
				near[m] = true
			}
		}
	}
	for n, l := range lines {
		switch {
		case near[n]:
			out = append(out, l)
		case len(out) > 0 && out[len(out)-1].Kind == "left":
			out[len(out)-1].Skipped++
		default:
			out = append(out, diffLine{Kind: "left", Skipped: 1})
		}
	}
	return out
}
