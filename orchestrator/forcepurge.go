package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// columnForced marks the row of a forced purge, and columnPurged is when that began.
	columnForced = "Forced"
	columnPurged = "PurgedAtUtc"
	// forceTries bounds how often a forced purge starts over because the orchestration has changed meanwhile.
	forceTries = 10
)

// ForcePurge purges an orchestration that cannot be read (ErrCorrupt), whether it has ended or not. It deletes the
// rows, the payloads and the human tasks. It also terminates and deletes the sub-orchestrations that it finds. A
// process that drives the orchestration notices the purge at its next round. A readable orchestration is purged if it
// has ended; otherwise the error is ErrActive: terminate it first. Like Purge, an interrupted ForcePurge leaves an
// orchestration that is invisible, and repeating the call finishes it. ErrElsewhere means that another process kept
// changing the orchestration: repeat the call.
//
// The calls of a damaged orchestration are not fully known. Sub-orchestrations are found by their ids, which begin
// with the id of their caller, and in the readable rounds. A sub-orchestration remains if it has another kind of id
// and its call is in a damaged round, or if its own status and first round are damaged. One that was to be abandoned
// is deleted if its call cannot be read.
func (r *Runtime) ForcePurge(ctx context.Context, id string) error {
	if !validID(id) {
		return fmt.Errorf("orchestration %.400q: %w", id, ErrNotFound)
	}
	err := r.purge(ctx, id, purgeScope{top: id, seen: map[string]bool{}, force: true})
	if err == nil || errors.Is(err, ErrNotFound) {
		err = errors.Join(err, r.clearDamage(ctx, tables.EscapeKey(id)))
	}
	return err
}

// forcePurge is purge for an orchestration that may be damaged. It starts over when the orchestration changes
// meanwhile.
func (r *Runtime) forcePurge(ctx context.Context, id string, p purgeScope) error {
	for range forceTries {
		again, err := r.tryForce(ctx, id, p)
		if err != nil && !again {
			return fmt.Errorf("forced purge of orchestration %s: %w", id, err)
		}
		if !again {
			return nil
		}
	}
	return fmt.Errorf("forced purge of orchestration %s: %w", id, ErrElsewhere)
}

// tryForce reads the rows before it decides whether they are damaged. It marks the purge on condition that the status
// is the one it has read, so the mark fails if a round was committed since.
func (r *Runtime) tryForce(ctx context.Context, id string, p purgeScope) (again bool, err error) {
	rows, status, err := r.journal.rows(ctx, id)
	if err != nil {
		return false, err
	}
	all, etag, err := r.journal.loadTagged(ctx, id)
	switch {
	case err == nil && len(all) > 0 && all[len(all)-1].active() && id != p.top:
		err = r.terminate(ctx, id, all[len(all)-1])
		return err == nil || changedMeanwhile(err), err
	case err == nil:
		return false, r.purgeLoaded(ctx, id, all, etag, p)
	case !errors.Is(err, ErrCorrupt):
		return false, err
	}
	known := maps.Clone(p.seen) // children that are called again meanwhile have to be found again
	if err := r.purgeFound(ctx, id, rows, p); err != nil {
		return false, err
	}
	if err := r.markForced(ctx, id, rows, status); err != nil {
		maps.DeleteFunc(p.seen, func(child string, _ bool) bool { return !known[child] })
		return changedMeanwhile(err), err
	}
	return false, r.purgeRest(ctx, id)
}

// changedMeanwhile reports whether an error of storage may mean that another caller changed the orchestration, or that
// the request was carried out.
func changedMeanwhile(err error) bool {
	return errors.Is(err, ErrElsewhere) || purgedByAnother(err) || errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrOutcomeUnknown)
}

// markForced begins the purge of damaged rows, provided that they are unchanged. From then on no process can add a
// round, because the status row is missing, nor start the orchestration again, because a first round exists.
func (r *Runtime) markForced(ctx context.Context, id string, rows []tables.Entity, status tables.Entity) error {
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	columns, _, err := r.journal.codec.encode(new(roundBuffers), round{Learned: []event{{Kind: orchestrationPurged, At: r.config.Now().UnixMicro()}}})
	if err != nil {
		return err
	}
	partition := tables.EscapeKey(id)
	first := tables.Entity{Key: tables.Key{Partition: partition, Row: roundKey(1, 1)}, Properties: columns}
	ops := []tables.Op{
		tables.Upsert(tables.Entity{Key: tables.Key{Partition: partition, Row: purgeRow}, Properties: map[string]any{columnForced: true, columnPurged: r.config.Now()}}),
		tables.Insert(first),
	}
	if len(rows) > 0 && rows[0].Row == first.Row {
		first.ETag = rows[0].ETag
		ops[1] = tables.Replace(first)
	}
	if status.Row != "" {
		ops = append(ops, tables.Delete(status.Key, status.ETag))
	}
	for _, row := range nextRounds(rows, status) {
		ops = append(ops, tables.Insert(tables.Entity{Key: tables.Key{Partition: partition, Row: row}, Properties: columns}))
	}
	return r.config.Tables.Apply(ctx, r.config.Table, ops...)
}

// nextRounds returns the keys of the rounds that a process could add when no status row was read. The row may have
// been restored meanwhile, and the orchestration may have continued.
func nextRounds(rows []tables.Entity, status tables.Entity) []string {
	if status.Row != "" || len(rows) == 0 {
		return nil
	}
	execution, number, ok := parseRoundKey(rows[len(rows)-1].Row)
	if !ok {
		return nil
	}
	return []string{roundKey(execution, number+1), roundKey(execution+1, 1)}
}

// purgeFound purges the sub-orchestrations of a damaged orchestration that can be found.
func (r *Runtime) purgeFound(ctx context.Context, id string, rows []tables.Entity, p purgeScope) error {
	for _, row := range rows {
		round, err := decodeRound(row)
		if err != nil {
			continue
		}
		for _, e := range round.Decided {
			if e.Kind != childScheduled || p.seen[e.target().Child] {
				continue
			}
			if s, err := r.Status(ctx, e.target().Child); err == nil && s.Parent != id {
				continue // the call has failed, because the id belongs to another orchestration
			}
			if err := r.purgeChild(ctx, e.target().Child, e.target().Close, p); err != nil {
				return err
			}
		}
	}
	return r.purgeForgotten(ctx, id, p)
}

// terminate ends a sub-orchestration immediately, for the forced purge of its caller.
func (r *Runtime) terminate(ctx context.Context, id string, latest storedExecution) error {
	err := r.endWithoutCode(ctx, id, latest, event{Kind: executionTerminated, Signal: &signalDetails{Reason: "its caller is purged by force"}})
	if err != nil {
		return fmt.Errorf("orchestration %s: %w", id, asElsewhere(err))
	}
	return nil
}

// anyTaskRow matches the row keys of human tasks.
var anyTaskRow = regexp.MustCompile(`^task-([0-9]{1,9}-[0-9]{1,9})(-[0-9]{6,}|-end)?$`)

// forgetTasks removes the human tasks of these rows from the task index.
func (r *Runtime) forgetTasks(ctx context.Context, id string, rows []tables.Entity) error {
	service, seen := r.Tasks(), map[string]bool{}
	for _, row := range rows {
		match := anyTaskRow.FindStringSubmatch(row.Row)
		if match == nil || seen[match[1]] {
			continue
		}
		seen[match[1]] = true
		if err := service.Forget(ctx, tasks.Ref{Orchestration: id, ID: match[1]}); err != nil {
			return err
		}
	}
	return nil
}
