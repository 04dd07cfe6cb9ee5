package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// batch is the number of rows in a transaction.
	batch = 100
	// atOnce bounds the targets that are sent in parallel.
	atOnce = 8
	// writeLimit bounds a transaction, also after the end of a tick.
	writeLimit = 5 * time.Second
	// maxErrors bounds the errors that a tick returns; the rows and the log have all of them.
	maxErrors = 10
)

// Count counts the work of a tick.
type Count struct {
	// Looked means that storage was read.
	Looked bool
	// Items counts the sent targets, Messages their messages, and Failed the targets that could not be sent.
	Items, Messages, Failed int
}

// entry is a target in a tick.
type entry struct {
	line   *line
	item   engine.Item
	timing timing
	state  state
	// due means that slot is to be sent.
	due  bool
	slot time.Time
	// op is the row to write when nothing is sent; nil for none.
	op *tables.Op
	// held is the pause after failed writes of its row.
	held pause
	// err is the reason why it could not be sent.
	err error
}

// Tick sends due slots. It is called once a minute; concurrent ticks do nothing. Failures in the error are retried by
// one of the next ticks.
func (s *Scheduler) Tick(ctx context.Context) (Count, error) {
	if !s.tick.TryLock() {
		return Count{}, nil
	}
	defer s.tick.Unlock()
	now := s.now()
	if !s.readAt.IsZero() && !now.Before(s.readAt) && now.Sub(s.readAt) < Refresh && now.Before(s.next) {
		return Count{}, nil
	}
	s.readAt = time.Time{} // unless this read succeeds
	work, complete, err := s.look(ctx, now)
	count, errs, written := Count{Looked: true}, []error{err}, true
	for some := range slices.Chunk(busy(work), batch) {
		if ctx.Err() != nil {
			written, errs = false, append(errs, fmt.Errorf("schedules: the time of this tick is over: %w", context.Cause(ctx)))
			break
		}
		s.send(ctx, some, now)
		wrote, err := s.write(ctx, some, now)
		written, errs = written && wrote, append(errs, err)
		for _, e := range some {
			errs = append(errs, e.err)
			count.add(e)
		}
	}
	if err == nil && written {
		s.readAt, s.next = now, s.earliest(work, now)
		for _, l := range complete {
			s.seen[l] = now
		}
	}
	return count, shorten(errs)
}

// busy returns the entries with work.
func busy(work []*entry) []*entry {
	return slices.DeleteFunc(slices.Clone(work), func(e *entry) bool { return !e.due && e.op == nil })
}

func (c *Count) add(e *entry) {
	switch {
	case e.due && e.err == nil:
		c.Items++
		c.Messages += e.state.messages
	case e.due:
		c.Failed++
	}
}

// shorten joins errors, the first of them.
func shorten(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) > maxErrors {
		errs = append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more", len(errs)-maxErrors))
	}
	return errors.Join(errs...)
}

// earliest returns the time of the next work.
func (s *Scheduler) earliest(work []*entry, now time.Time) time.Time {
	first := now.Add(Refresh)
	note := func(due time.Time, ok bool) {
		if ok && due.Before(first) {
			first = due
		}
	}
	for _, e := range work {
		if e.state.failures > 0 {
			note(e.state.retryAt, true)
			continue
		}
		_, due, ok := e.timing.next(e.state.slot, e.state.after)
		note(due, ok)
	}
	for _, l := range s.plan.lines {
		if _, fixed := l.schedule.Items.Fixed(); l.schedule.Items != nil && !fixed { // new targets are possible by then
			t, _ := newTiming(l.cron, 0, l.key) // checked before
			_, due, ok := t.next(time.Time{}, now)
			note(due, ok)
		}
	}
	return first
}

// write writes the progress of some targets, and reports whether it did. If another process has written a row, the
// next tick reads again.
func (s *Scheduler) write(ctx context.Context, some []*entry, now time.Time) (written bool, err error) {
	var ops []tables.Op
	for _, e := range some {
		switch {
		case e.due && (e.err == nil || ctx.Err() == nil): // the end of a tick is no failure of the target
			ops = append(ops, e.state.op())
		case e.op != nil:
			ops = append(ops, *e.op)
		}
	}
	if len(ops) == 0 {
		return true, nil
	}
	ctx, cancel := outage.Finish(ctx, writeLimit) // sent slots are recorded
	defer cancel()
	err = s.tables.Apply(ctx, Table, ops...)
	for _, e := range some {
		delete(s.unwritten, e.state.key())
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, tables.ErrPrecondition), errors.Is(err, tables.ErrExists), errors.Is(err, tables.ErrNotFound):
		s.log.InfoContext(ctx, "schedules: another process was there first: the next tick looks again", "error", err.Error())
		return false, nil
	}
	for _, e := range some {
		if e.due {
			s.unwritten[e.state.key()] = e.held.again(now)
		}
	}
	return false, fmt.Errorf("note what schedules have sent (it is sent again, as duplicates): %w", err)
}

// send sends the due slots of some targets, several in parallel.
func (s *Scheduler) send(ctx context.Context, some []*entry, now time.Time) {
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, e := range some {
		if !e.due {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			s.sendOne(ctx, e, now)
		})
	}
	all.Wait()
}

// sendOne sends a slot of a target, and records the result in its state.
func (s *Scheduler) sendOne(ctx context.Context, e *entry, now time.Time) {
	sent, err := e.line.schedule.SendItem(ctx, e.line.engine, s.queues, e.item, e.slot)
	row := &e.state
	row.changed = now
	log := s.log.With("engine", row.engine, "schedule", row.schedule, "item", row.item, "slot", e.slot, "messages", len(sent))
	if err != nil {
		e.err = err
		p := pause{failures: row.failures}.again(now)
		row.err, row.failures, row.retryAt = err.Error(), p.failures, p.until
		log.WarnContext(ctx, "a schedule could not send all messages: it is tried again", "againAt", p.until, "error", engine.Redact(err.Error()))
		return
	}
	old := row.timing()
	row.after, row.slot, row.sentAt, row.messages = e.slot.Add(old.shift), e.slot, now, len(sent)
	if !old.same(e.timing) { // the previous times owed this slot; from here on others apply
		row.after, row.cron, row.spread = now, e.timing.cron, e.timing.spread
	}
	row.err, row.failures, row.retryAt = "", 0, time.Time{}
	row.sent = Sent{}
	if len(sent) > 0 {
		row.sent = Sent{sent[0].CorrelationID, sent[0].InstanceID, sent[0].TenantID}
	}
	log.DebugContext(ctx, "schedule") // a tick logs their number
}

// byKey orders entries by their rows.
func byKey(a, b *entry) int { return cmp.Compare(a.state.key(), b.state.key()) }
