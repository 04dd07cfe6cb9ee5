package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// Purge deletes all stored data of an orchestration that has ended: its rows, its payloads, and its
// sub-orchestrations, but not the detached orchestrations that it started. The error is ErrActive if one of them has
// not ended, ErrNotFound if the orchestration does not exist, and ErrCorrupt if one cannot be read: use ForcePurge. An
// interrupted purge leaves an orchestration that is invisible; repeating the call, or starting the id again, finishes
// it.
func (r *Runtime) Purge(ctx context.Context, id string) error {
	if !validID(id) {
		return fmt.Errorf("orchestration %.400q: %w", id, ErrNotFound)
	}
	return r.purge(ctx, id, purgeScope{top: id, seen: map[string]bool{}})
}

// purgeScope is passed down while a purge descends from an orchestration to its sub-orchestrations.
type purgeScope struct {
	top  string
	seen map[string]bool
	// force purges damaged orchestrations, too, and terminates sub-orchestrations that have not ended.
	force bool
}

func (r *Runtime) purge(ctx context.Context, id string, p purgeScope) error {
	p.seen[id] = true
	if p.force {
		return r.forcePurge(ctx, id, p)
	}
	all, etag, err := r.journal.loadTagged(ctx, id)
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return r.purgeLoaded(ctx, id, all, etag, p)
}

// purgeLoaded purges an orchestration that can be read.
func (r *Runtime) purgeLoaded(ctx context.Context, id string, all []storedExecution, etag string, p purgeScope) error {
	if len(all) == 0 {
		return r.finishPurge(ctx, id)
	}
	latest := all[len(all)-1]
	if latest.active() {
		return fmt.Errorf("purge of orchestration %s: %w", id, ErrActive)
	}
	emitLast := func(d *driver, ctx context.Context, last round) error {
		d.notifiesParent = id == p.top  // otherwise the caller is being purged, too
		return d.emitOutward(ctx, last) // its sub-orchestrations have ended, and are purged with it
	}
	if err := r.repeatLastEffects(ctx, id, all, emitLast); err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	if err := r.purgeCalls(ctx, id, all, p); err != nil {
		return fmt.Errorf("purge of orchestration %s: %w", id, err)
	}
	// A restart, a rewind and a purge compete for the first round of the next execution.
	if err := r.journal.markPurge(ctx, id, latest, etag, r.config.Now()); err != nil {
		return asElsewhere(err)
	}
	return r.purgeRest(ctx, id)
}

// purgeCalls purges the human tasks and the sub-orchestrations of an orchestration that can be read.
func (r *Runtime) purgeCalls(ctx context.Context, id string, all []storedExecution, p purgeScope) error {
	for _, g := range all {
		for _, c := range summarize(id, g).Calls {
			if c.Kind == TaskCall {
				if err := r.Tasks().Forget(ctx, tasks.Ref{Orchestration: id, ID: c.TaskID()}); err != nil {
					return err
				}
			}
			if c.Child == "" || p.seen[c.Child] {
				continue
			}
			if err := r.purgeChild(ctx, c.Child, c.Close, p); err != nil {
				return err
			}
		}
	}
	if len(all) == all[len(all)-1].number {
		return nil
	}
	return r.purgeForgotten(ctx, id, p)
}

// purgeChild purges a sub-orchestration together with its caller. A forced purge spares one that was to be abandoned
// and has not ended.
func (r *Runtime) purgeChild(ctx context.Context, id string, policy ParentClose, p purgeScope) error {
	if p.force && policy == AbandonChild {
		if s, err := r.Status(ctx, id); err == nil && !s.Ended() {
			p.seen[id] = true
			return nil
		}
	}
	if err := r.purge(ctx, id, p); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// purgeForgotten purges sub-orchestrations whose calls are in deleted or damaged rounds. Their ids begin with the id
// of their caller, unless WithID set another one.
func (r *Runtime) purgeForgotten(ctx context.Context, id string, p purgeScope) error {
	children, err := r.scanChildren(ctx, id, statusRow, func(e tables.Entity) string { return e.String("ParentId") })
	if err == nil && p.force { // some may have lost their status rows
		var more []string
		more, err = r.scanChildren(ctx, id, roundKey(1, 1), parentIn)
		children = append(children, more...)
	}
	for _, child := range children {
		if err == nil && !p.seen[child] {
			err = r.purgeChild(ctx, child, "", p)
		}
	}
	return err
}

// parentIn returns the caller of the orchestration that this first round began, "" when the round has none.
func parentIn(first tables.Entity) string {
	r, err := decodeRound(first)
	if err != nil || len(r.Learned) == 0 {
		return ""
	}
	return r.Learned[0].start().Parent
}

// scanChildren finds sub-orchestrations by the beginning of their ids, and by a row that names their caller.
func (r *Runtime) scanChildren(ctx context.Context, id, row string, parent func(tables.Entity) string) ([]string, error) {
	from := tables.EscapeKey(id + ":")
	scan := tables.Scan{Row: row, FromPartition: from, ToPartition: tables.PrefixEnd(from)}
	var children []string
	for e, err := range tables.ScanAll(ctx, r.config.Tables, r.config.Table, scan) {
		if err != nil {
			return nil, err
		}
		child, err := tables.UnescapeKey(e.Partition)
		if err != nil {
			r.noteUnnamedDamage(ctx, e.Partition, err)
			continue
		}
		if parent(e) == id {
			children = append(children, child)
		}
	}
	return children, nil
}
