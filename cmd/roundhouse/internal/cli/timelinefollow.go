package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// follower shows a timeline while it grows.
type follower struct {
	*app
	client   *client.Client
	id       string
	query    url.Values
	interval time.Duration
	// shown are the shown items, in their state at that time.
	shown map[string]string
	began bool
}

// slowest bounds the pause between two reads, in intervals.
const slowest = 8

// run shows new items until all runs have ended. An unknown run, or a brief outage of the app, is no end.
func (f *follower) run(ctx context.Context) error {
	f.shown = map[string]string{}
	wait, failed := f.interval, 0
	for {
		news, ended, err := f.look(ctx)
		code := exitCode(&failure{err})
		switch {
		case err == nil:
			failed = 0
		case code == exitNotFound && !f.began:
		case code == exitUnreachable && failed < patience:
			failed++
		default:
			return err
		}
		if ended {
			return nil
		}
		if wait = min(2*wait, slowest*f.interval); news {
			wait = f.interval
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// look reads the timeline once, and shows new and changed items.
func (f *follower) look(ctx context.Context) (news, ended bool, err error) {
	t, err := f.timeline(ctx, f.client, f.id, nil) // unfiltered, because the filter may hide the runs and their ends
	if err != nil {
		return false, false, err
	}
	ended = allEnded(t)
	if len(f.query) > 0 {
		if t, err = f.timeline(ctx, f.client, f.id, f.query); err != nil {
			return false, false, err
		}
	}
	items, err := decodeItems(t.Items)
	if err != nil {
		return false, false, err
	}
	f.began = true
	runs := parents(items)
	for n, i := range items {
		if known, ok := f.shown[i.ID]; ok && known == told(i) {
			continue
		}
		f.shown[i.ID], news = told(i), true
		if err := f.show(i, t.Items[n], runs); err != nil {
			return false, false, err
		}
	}
	return news, ended, nil
}

// told returns the visible part of an item; a run that has only waited meanwhile is unchanged.
func told(i client.TimelineItem) string {
	h := happened(i)
	return h.status + "\n" + h.what
}

// show writes an item as a line.
func (f *follower) show(i client.TimelineItem, raw json.RawMessage, parents map[string]string) error {
	if f.asJSON() {
		_, err := fmt.Fprintln(f.Stdout, escapeUnprintable(string(raw)))
		return err
	}
	h := happened(i)
	line := printable(fmt.Sprintf("%s  %-13s  %-13s  %s%s", at(i.At), i.Kind, h.status, indent(h.run, parents), h.what))
	if width := f.screen.width; width > 0 && !f.flags.wide {
		line = cutTo(line, width)
	}
	_, err := fmt.Fprintln(f.Stdout, line)
	return err
}

// allEnded reports whether there are runs, and all have ended.
func allEnded(t client.Timeline) bool {
	runs := 0
	for _, raw := range t.Items {
		var i client.TimelineItem
		if json.Unmarshal(raw, &i) != nil || i.Orchestration == nil {
			continue
		}
		if i.Orchestration.EndedAt.IsZero() {
			return false
		}
		runs++
	}
	return runs > 0
}
