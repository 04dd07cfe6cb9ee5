package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// columnForced marks the row of a purge that was forced, columnPurged is when it began.
	columnForced = "Forced"
	columnPurged = "PurgedAtUtc"
	// forceTries is how often a forced purge begins when somebody goes on with the orchestration meanwhile.
	forceTries = 10
)

// ForcePurge is Purge for an orchestration that cannot be read (ErrCorrupt), whether it has ended or not: it deletes its
// rows, its payloads, its human tasks, and the sub-orchestrations that can be found, after it has terminated those. A
// process that drives the orchestration finds at its next round that it is purged. One that can be read is purged if it has
// ended; ErrActive says that it has not: terminate it. As Purge, it is invisible when it was interrupted, and goes on when it
// is repeated. ErrElsewhere says that another process is so quick to go on that it has to be repeated.
//
// Of a damaged one, nobody knows all that it had called: sub-orchestrations are found by their ids, which begin with that
// of their caller, and in rounds that can be read. One with another id whose call is in a damaged round stays, and so does
// one whose own status and first round are damaged. One that was to be abandoned, and whose call cannot be read, goes.
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

// forcePurge is purge for what may be damaged. It begins again when somebody goes on with the orchestration meanwhile.
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

// tryForce reads the rows before it judges them. What is judged damaged was so when they were read, unless somebody has added
// a round since; then the mark is refused, which needs the status that was read.
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
	known := maps.Clone(p.seen) // what somebody calls again meanwhile is to be found again
	if err := r.purgeFound(ctx, id, rows, p); err != nil {
		return false, err
	}
	if err := r.markForced(ctx, id, rows, status); err != nil {
		maps.DeleteFunc(p.seen, func(child string, _ bool) bool { return !known[child] })
		return changedMeanwhile(err), err
	}
	return false, r.purgeRest(ctx, id)
}

// changedMeanwhile says that an answer of storage may mean that the orchestration is not what it was any more, or that what
// was asked for is done.
func changedMeanwhile(err error) bool {
	return errors.Is(err, ErrElsewhere) || purgedByAnother(err) || errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrOutcomeUnknown)
}

// markForced begins the purge of rows that were found damaged, as long as they are as they were found. From then on nobody
// can add a round, because there is no status, and nobody can begin anew, because there is a first round.
func (r *Runtime) markForced(ctx context.Context, id string, rows []tables.Entity, status tables.Entity) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	columns, _, err := r.journal.codec.encode(round{Learned: []event{{Kind: orchestrationPurged, At: r.config.Now().UnixMicro()}}})
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

// nextRounds are the keys of the rounds that somebody would add to these, where there is no status: one may have been
// restored since, and the orchestration gone on.
func nextRounds(rows []tables.Entity, status tables.Entity) []string {
	var execution, number int
	if status.Row != "" || len(rows) == 0 {
		return nil
	}
	if _, err := fmt.Sscanf(rows[len(rows)-1].Row, roundPrefix+"%08d-%08d", &execution, &number); err != nil {
		return nil
	}
	return []string{roundKey(execution, number+1), roundKey(execution+1, 1)}
}

// purgeFound purges the sub-orchestrations of a damaged one that can be found.
func (r *Runtime) purgeFound(ctx context.Context, id string, rows []tables.Entity, p purgeScope) error {
	for _, row := range rows {
		round, err := decodeRound(row)
		if err != nil {
			continue
		}
		for _, e := range round.Decided {
			if e.Kind != childScheduled || p.seen[e.Child] {
				continue
			}
			if s, err := r.Status(ctx, e.Child); err == nil && s.Parent != id {
				continue // the call has failed: the id is another's
			}
			if err := r.purgeChild(ctx, e.Child, e.Close, p); err != nil {
				return err
			}
		}
	}
	return r.purgeForgotten(ctx, id, p)
}

// terminate ends an orchestration here and now, for the forced purge of its caller.
func (r *Runtime) terminate(ctx context.Context, id string, latest storedExecution) error {
	err := r.endWithoutCode(ctx, id, latest, event{Kind: executionTerminated, Reason: "its caller is purged by force"})
	if err != nil {
		return fmt.Errorf("orchestration %s: %w", id, asElsewhere(err))
	}
	return nil
}

// anyTaskRow is the key of a row of a human task.
var anyTaskRow = regexp.MustCompile(`^task-([0-9]{1,9}-[0-9]{1,9})(-[0-9]{6,}|-end)?$`)

// forgetTasks takes the human tasks out of their index of which there are rows.
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
