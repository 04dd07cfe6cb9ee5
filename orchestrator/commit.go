package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/tables"
)

// commit makes learned events and decisions durable, and then carries out their effects. No effect comes before its
// commit. When another process committed a round first, commit applies that round and then commits the rest.
func (d *driver) commit(ctx context.Context) error {
	for {
		err := d.commitRounds(ctx)
		if !errors.Is(err, errLostRace) || d.conflicts >= conflictTries {
			return err
		}
		if err := d.catchUp(ctx); err != nil || d.pastOutcome != nil {
			return err
		}
		if len(d.learned) == 0 && len(d.execution.decided) == 0 {
			return nil
		}
	}
}

// commitRounds commits everything, in one round if it fits.
func (d *driver) commitRounds(ctx context.Context) error {
	for {
		if err := d.commitRound(ctx); err != nil || len(d.learned) == 0 && len(d.execution.decided) == 0 {
			return err
		}
	}
}

// commitRound commits one round. It divides a part that does not fit; an indivisible part ends the execution.
func (d *driver) commitRound(ctx context.Context) error {
	if err := d.repeatEffects(ctx); err != nil {
		return err
	}
	for share := 1; ; share *= 2 {
		p := d.nextPart(share)
		err := d.commitPart(ctx, p)
		if !errors.Is(err, tables.ErrTooLarge) {
			return err
		}
		if p.indivisible() {
			return d.commitOversize(ctx, p, err)
		}
	}
}

// commitPart commits one part as a round, deletes the rows and blobs that it made obsolete, and carries out the
// effects.
func (d *driver) commitPart(ctx context.Context, p roundPart) error {
	if err := d.confirm(ctx); err != nil {
		return err
	}
	r := d.buildRound(p)
	d.execution.partial = !p.whole
	people := d.taskOps(p)
	drop := d.obsoleteRows[:min(len(d.obsoleteRows), max(dropSlice-len(people), 0))]
	emptied, litter := d.emptiedExecutions(drop)
	old := d.listBlobs(ctx, emptied)
	now := fromMicros(d.rt.config.Now().UnixMicro())
	d.setStatus(now)
	blobs, err := d.rt.journal.commit(ctx, d.start.ID, d.execution.number, len(d.rounds)+1, r, d.buffers, d.requiredETag, append(d.otherRowOps(drop), people...)...)
	if err != nil {
		return err
	}
	d.obsoleteRows, d.obsoleteBlobs, d.blobs = d.obsoleteRows[len(drop):], litter, d.blobs || blobs
	d.writtenAt = now
	d.roundCommitted(r, p)
	d.traceCommitted(r)
	d.deleteBlobs(ctx, old)
	return d.emit(ctx, r)
}

// otherRowOps returns the operations on other rows in the round's transaction.
func (d *driver) otherRowOps(drop []string) []tables.Op {
	if d.marker.kept && d.execution.number == 1 {
		return nil
	}
	partition := tables.EscapeKey(d.start.ID)
	ops := d.marker.roundOps(partition)
	if len(d.rounds) == 0 {
		ops = d.marker.startOps(partition, d.previousMarker)
	}
	for _, row := range drop {
		ops = append(ops, tables.Delete(tables.Key{Partition: partition, Row: row}, ""))
	}
	return ops
}

// usualRounds is enough rounds for most executions.
const usualRounds = 4

// roundCommitted updates the driver after a round has become durable.
func (d *driver) roundCommitted(r round, p roundPart) {
	d.reportStatus()
	x := d.execution
	if d.requiredETag = ""; d.rounds == nil {
		d.rounds = make([]round, 0, usualRounds)
	}
	d.rounds = append(d.rounds, r)
	d.version++
	d.committed++
	d.known = x.callsAfter(p.decided)
	d.closeTasks(p)
	x.partial = false
	if d.dropCommitted(p); p.whole {
		d.commitNow = false
		d.acknowledge()
	}
}

// commitOversize ends an execution that learned or decided something too large for storage, because a retry cannot
// help.
func (d *driver) commitOversize(ctx context.Context, p roundPart, cause error) error {
	x := d.execution
	var what event
	switch {
	case x.ended && x.end.tooLarge() || p.learned > 0 && d.learned[0].Kind == executionStarted:
		return fmt.Errorf("%w: %w", ErrPayload, cause) // the execution cannot even begin
	case p.learned > 0:
		what = d.learned[0]
	default:
		what = x.decided[0]
	}
	f := &Failure{Message: clip(fmt.Sprintf("%s cannot be stored: %v", what.describe(), cause)), Code: codeTooLarge, Permanent: true}
	known := d.known
	x.close()
	d.dropUncommitted()
	x.tasks = x.tasks[:known]
	x.humanTasks = slices.DeleteFunc(x.humanTasks, func(t *task) bool { return t.number > known })
	d.learned, d.decisionsAfter = []event{{Kind: executionGivenUp, At: x.tick(), Failure: f}}, []int{1}
	x.finish(event{Kind: executionFailed, Failure: f})
	return d.commitRound(ctx)
}

// asElsewhere converts a lost race to ErrElsewhere: another process runs the orchestration.
func asElsewhere(err error) error {
	if errors.Is(err, errLostRace) {
		return fmt.Errorf("%w: %w", ErrElsewhere, err)
	}
	return err
}
