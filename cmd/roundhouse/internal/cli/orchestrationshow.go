package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// waitsFor returns the wait of an orchestration, for a table.
func waitsFor(o client.OrchestrationItem) string {
	switch {
	case o.Status == "Stalled":
		return "mended code"
	case o.Status == "Retrying":
		return "the next attempt"
	case o.Late:
		return o.WaitingFor + ", late"
	default:
		return o.WaitingFor
	}
}

// waiting returns the wait as the end of a sentence, with the time if it is late.
func waiting(o client.OrchestrationItem) string {
	text := waitsFor(o)
	if text == "" {
		return ""
	}
	if o.Late {
		text = o.WaitingFor + " until " + day(o.WaitingUntil) + ", which is late"
	}
	return ", waits for " + text
}

// showOrchestration shows an orchestration. Problems come first.
func (a *app) showOrchestration(ctx context.Context, id string) error {
	data, err := a.raw(ctx, a.api, nil, "orchestrations", id)
	if err != nil {
		return err
	}
	var o client.OrchestrationDetail
	if err := decodeInto(data, &o); err != nil {
		return err
	}
	if text := a.trouble(o); text != "" && !a.asJSON() {
		if _, err := fmt.Fprintf(a.Stdout, "%s\n\n", block(text)); err != nil {
			return err
		}
	}
	return a.printDetail(data)
}

// trouble returns the problem of an orchestration and the remedy; "" for none.
func (a *app) trouble(o client.OrchestrationDetail) string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case o.Status == "Stalled":
		say("STALLED%s: its code cannot go on.", a.moment(" since ", o.StatusSince))
	case o.Status == "Retrying":
		say("RETRYING%s: attempt %d failed, and another one follows by itself.", a.moment(" since ", o.StatusSince), o.Attempt)
	case o.Status == "Failed":
		say("FAILED%s, in attempt %d.", a.moment(" at ", o.EndedAt), o.Attempt)
	case o.Late:
		say("LATE: it waits for %s, which was due%s.", o.WaitingFor, a.moment(" at ", o.WaitingUntil))
		say("  Its message is late or lost. The sweeper wakes it within minutes (docs/operating.md, \"When a queue loses messages\").")
	}
	if len(lines) > 0 && !o.Late && o.Failure != nil {
		say("  %s", strings.ReplaceAll(o.Failure.Message, "\n", "\n  "))
	}
	switch o.Status {
	case "Stalled":
		say("  Mend the code and deploy it: within minutes it goes on by itself. Only terminate ends it before (docs/failures.md).")
	case "Retrying":
		say("  Events and commands are kept for that attempt. To end it now: cancel, or terminate (docs/failures.md).")
	case "Failed":
		say("  When the cause is mended: retry its dead letter, or rewind it (docs/failures.md).")
	}
	return strings.Join(lines, "\n")
}

// moment returns a time, and its age.
func (a *app) moment(word string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s%s UTC (%s ago)", word, day(t), max(a.Now().Sub(t), 0).Truncate(time.Second))
}
