package console

import (
	"fmt"
	"strconv"
	"time"
)

// The measures of the picture, in its own units.
const (
	chartWidth  = 960
	labelWidth  = 240
	rowHeight   = 24
	barHeight   = 12
	axisHeight  = 28
	plotEnd     = chartWidth - 16
	leastBar    = 3.0
	chartRows   = 200
	chartTicks  = 5
	labelLength = 28
)

// chart is a picture of a timeline: a row for each thing, with a bar from its beginning to its end, or a mark where it has none.
// The table has the same in words.
type chart struct {
	Width, Height int
	Ticks         []tick
	Rows          []chartRow
	// Now is where the present is, 0 if it is not in the picture.
	Now float64
	// Left says how many rows the picture does not have.
	Left int
	// From and To are what it spans.
	From, To time.Time
}

// Top is where the rows begin.
func (chart) Top() int { return axisHeight }

// tick is a line of the axis.
type tick struct {
	X     float64
	Label string
}

// At is where the line is, as the picture has it.
func (t tick) At() string { return number(t.X) }

// Anchor says which part of the label is at the line, so that none leaves the picture.
func (t tick) Anchor() string {
	if t.X >= plotEnd {
		return "end"
	}
	return "middle"
}

// NowAt is where the present is, as the picture has it.
func (c chart) NowAt() string { return number(c.Now) }

// chartRow is a row of the picture.
type chartRow struct {
	Middle, Text int
	Label        Text
	Bars         []bar
	// Mark is where something without an end happened, 0 for none.
	Mark    float64
	Outcome string
	// Title says it in words, for who points at it.
	Title Text
}

// Points are the corners of the mark.
func (r chartRow) Points() string {
	y := float64(r.Middle)
	return fmt.Sprintf("%s,%s %s,%s %s,%s %s,%s", number(r.Mark), number(y-6), number(r.Mark+6), number(y), number(r.Mark), number(y+6), number(r.Mark-6), number(y))
}

// bar is a time in a row; Failed says that it ended with an error, Open that it has not ended.
type bar struct {
	X, Width     float64
	Y, Height    int
	Failed, Open bool
}

// Left is where a bar begins, as the picture has it.
func (b bar) Left() string { return number(b.X) }

// Wide is how wide it is.
func (b bar) Wide() string { return number(b.Width) }

// Foot is the line that what is written beside it stands on.
func (b bar) Foot() int { return b.Y + b.Height - 1 }

// End is where it ends.
func (b bar) End() string { return number(b.X + b.Width) }

// chartOf makes a picture of rows, nil of none.
func chartOf(rows []timelineRow, now time.Time) *chart {
	if len(rows) == 0 {
		return nil
	}
	c := &chart{Width: chartWidth, From: rows[0].At, To: rows[0].At}
	if len(rows) > chartRows {
		c.Left = len(rows) - chartRows
		rows = rows[:chartRows]
	}
	running := false
	for _, r := range rows {
		c.spanTo(r.At)
		c.spanTo(r.EndedAt)
		for _, a := range r.Attempts {
			c.spanTo(a.BeganAt)
			c.spanTo(a.EndedAt)
		}
		running = running || r.continues()
	}
	if running {
		c.spanTo(now)
	}
	for n, r := range rows {
		c.Rows = append(c.Rows, c.rowOf(n, r, now))
	}
	c.Height = axisHeight + len(rows)*rowHeight
	for n := range chartTicks {
		at := c.From.Add(c.To.Sub(c.From) / (chartTicks - 1) * time.Duration(n)) // divided first: data can span what no Duration holds four times
		c.Ticks = append(c.Ticks, tick{c.x(at), c.label(at)})
	}
	if running {
		c.Now = c.x(now)
	}
	return c
}

// continues says whether something has begun and not ended yet.
func (r timelineRow) continues() bool {
	return r.EndedAt.IsZero() && r.Outcome == open && r.Kind != "deadLetter"
}

// spanTo makes the picture span a time.
func (c *chart) spanTo(t time.Time) {
	if t.IsZero() {
		return
	}
	if t.Before(c.From) {
		c.From = t
	}
	if t.After(c.To) {
		c.To = t
	}
}

// x is where a time is.
func (c *chart) x(t time.Time) float64 {
	whole := c.To.Sub(c.From)
	if whole <= 0 {
		return labelWidth
	}
	return labelWidth + float64(plotEnd-labelWidth)*min(max(float64(t.Sub(c.From))/float64(whole), 0), 1)
}

// label is a time of the axis, as exact as its span needs.
func (c *chart) label(t time.Time) string {
	switch whole := c.To.Sub(c.From); {
	case whole < 10*time.Second:
		return t.UTC().Format("15:04:05.000")
	case whole < 24*time.Hour:
		return t.UTC().Format("15:04:05")
	default:
		return t.UTC().Format("01-02 15:04")
	}
}

func (c *chart) rowOf(n int, r timelineRow, now time.Time) chartRow {
	y := axisHeight + n*rowHeight
	out := chartRow{Middle: y + rowHeight/2, Text: y + rowHeight/2 + 4, Label: short(r.What), Outcome: r.Outcome, Title: join(r.What, Text(r.Status), Text(r.Took()))}
	attempts := r.Attempts
	if len(attempts) == 0 && (!r.EndedAt.IsZero() || r.continues()) {
		attempts = []attempt{{BeganAt: r.At, EndedAt: r.EndedAt}}
		if r.Outcome == bad {
			attempts[0].Error = &itemError{}
		}
	}
	for _, a := range attempts {
		end := a.EndedAt
		if end.IsZero() {
			end = now
		}
		x := c.x(a.BeganAt)
		out.Bars = append(out.Bars, bar{X: x, Width: max(c.x(end)-x, leastBar), Y: y + (rowHeight-barHeight)/2, Height: barHeight, Failed: a.Error != nil, Open: a.EndedAt.IsZero()})
	}
	if len(out.Bars) == 0 {
		out.Mark = c.x(r.At)
	}
	return out
}

// short is a label that fits its column.
func short(t Text) Text {
	letters := []rune(t.String())
	if len(letters) <= labelLength {
		return t
	}
	return Text(letters[:labelLength-1]) + "…"
}

// number is a measure as the picture has it.
func number(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
