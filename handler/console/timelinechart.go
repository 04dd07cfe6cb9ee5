package console

import (
	"fmt"
	"strconv"
	"time"
)

// The dimensions of the chart, in its own units.
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

// chart is a chart of a timeline: a row for each item, with a bar from its start to its end, or a mark without an end.
// The table has the same as text.
type chart struct {
	Width, Height int
	Ticks         []tick
	Rows          []chartRow
	// Now is the position of the present, 0 if it is outside.
	Now float64
	// Left is the number of omitted rows.
	Left int
	// From and To are its time range.
	From, To time.Time
}

// Top returns the start of the rows.
func (chart) Top() int { return axisHeight }

// tick is a line of the axis.
type tick struct {
	X     float64
	Label string
}

// At returns the position of the line, in the chart's form.
func (t tick) At() string { return number(t.X) }

// Anchor returns the part of the label that is at the line, so that no label leaves the chart.
func (t tick) Anchor() string {
	if t.X >= plotEnd {
		return "end"
	}
	return "middle"
}

// NowAt returns the position of the present, in the chart's form.
func (c chart) NowAt() string { return number(c.Now) }

// chartRow is a row of the chart.
type chartRow struct {
	Middle, Text int
	Label        Text
	Bars         []bar
	// Mark is the position of an item without an end, 0 for none.
	Mark    float64
	Outcome string
	// Title describes it, as a tooltip.
	Title Text
}

// Points returns the corners of the mark.
func (r chartRow) Points() string {
	y := float64(r.Middle)
	return fmt.Sprintf("%s,%s %s,%s %s,%s %s,%s", number(r.Mark), number(y-6), number(r.Mark+6), number(y), number(r.Mark), number(y+6), number(r.Mark-6), number(y))
}

// bar is a time range in a row; Failed means that it ended with an error, Open that it has not ended.
type bar struct {
	X, Width     float64
	Y, Height    int
	Failed, Open bool
}

// Left returns the start of a bar, in the chart's form.
func (b bar) Left() string { return number(b.X) }

// Wide returns its width.
func (b bar) Wide() string { return number(b.Width) }

// Foot returns the baseline of the text next to it.
func (b bar) Foot() int { return b.Y + b.Height - 1 }

// End returns its end.
func (b bar) End() string { return number(b.X + b.Width) }

// chartOf returns a chart of rows, nil without any.
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
		at := c.From.Add(c.To.Sub(c.From) / (chartTicks - 1) * time.Duration(n)) // divided first: data can span four times the range of Duration
		c.Ticks = append(c.Ticks, tick{c.x(at), c.label(at)})
	}
	if running {
		c.Now = c.x(now)
	}
	return c
}

// continues reports whether an item has started and not ended yet.
func (r timelineRow) continues() bool {
	return r.EndedAt.IsZero() && r.Outcome == open && r.Kind != "deadLetter"
}

// spanTo extends the chart to a time.
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

// x returns the position of a time.
func (c *chart) x(t time.Time) float64 {
	whole := c.To.Sub(c.From)
	if whole <= 0 {
		return labelWidth
	}
	return labelWidth + float64(plotEnd-labelWidth)*min(max(float64(t.Sub(c.From))/float64(whole), 0), 1)
}

// label returns a time of the axis, as precise as its span needs.
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

// short returns a label that fits its column.
func short(t Text) Text {
	letters := []rune(t.String())
	if len(letters) <= labelLength {
		return t
	}
	return Text(letters[:labelLength-1]) + "…"
}

// number returns a dimension in the chart's form.
func number(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
