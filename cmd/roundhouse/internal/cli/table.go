package cli

import (
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// column is a column of a table over rows of a type.
type column[T any] struct {
	title string
	text  func(T) string
	// cut means that it may be cut to fit; ids are not, so that operators can copy them.
	cut bool
}

const (
	gap = 2
	// least is the minimum width of a cut column.
	least = 10
)

// writeTable writes rows. width bounds its lines; 0 does not. If cutting is not enough, the ids at the end of a row
// get a line of their own.
func writeTable[T any](w io.Writer, width int, columns []column[T], rows []T) error {
	cells := cellsOf(columns, rows)
	widths := widest(cells)
	split := len(columns)
	if width > 0 && !fit(columns, widths, width) {
		for split > 0 && !columns[split-1].cut {
			split--
		}
		widths = widest(cells) // the cut columns have room again
		fit(columns[:split], widths[:split], width)
	}
	var out strings.Builder
	for _, line := range cells {
		out.WriteString(joined(line[:split], widths[:split]) + "\n")
		if split < len(columns) {
			out.WriteString("    " + strings.Join(line[split:], "  ") + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// cellsOf returns the titles, and the texts of the rows.
func cellsOf[T any](columns []column[T], rows []T) [][]string {
	cells := [][]string{make([]string, len(columns))}
	for i, c := range columns {
		cells[0][i] = c.title
	}
	for _, row := range rows {
		line := make([]string, len(columns))
		for i, c := range columns {
			line[i] = printable(c.text(row))
		}
		cells = append(cells, line)
	}
	return cells
}

// widest returns the widths of the columns.
func widest(cells [][]string) []int {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, text := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	return widths
}

// joined returns a line of cells, each as wide as its column.
func joined(cells []string, widths []int) string {
	var b strings.Builder
	for i, text := range cells {
		b.WriteString(pad(cutTo(text, widths[i]), widths[i]+gap))
	}
	return strings.TrimRight(b.String(), " ")
}

// fit shrinks the widest cuttable column until the line fits; it returns false if no column can shrink further.
func fit[T any](columns []column[T], widths []int, width int) bool {
	total := -gap
	for _, w := range widths {
		total += w + gap
	}
	for total > width {
		widest := -1
		for i, c := range columns {
			if c.cut && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
		total--
	}
	return true
}

// cutTo returns the beginning of a text with so many characters, and an ellipsis.
func cutTo(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
}

// at returns a time for a table, in UTC; "" for none.
func at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("01-02 15:04:05")
}

// day returns a time with its year.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04")
}
