package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/tables"
)

// commit makes what was learned and decided durable. Only then may it have effects, and it has them at once. A round that
// another process committed first is taken in, and what is left to say is said after it.
func (d *driver) commit(ctx context.Context) error {
	for {
		err := d.commitRounds(ctx)
		if !errors.Is(err, errLostRace) || d.conflicts >= conflictTries {
			return err
		}
		if err := d.catchUp(ctx); err != nil || d.past != nil {
			return err
		}
		if len(d.learned) == 0 && len(d.execution.decided) == 0 {
			return nil
		}
	}
}

// commitRounds commits everything, in one round if that holds it.
func (d *driver) commitRounds(ctx context.Context) error {
	for {
		if err := d.commitRound(ctx); err != nil || len(d.learned) == 0 && len(d.execution.decided) == 0 {
			return err
		}
	}
}

// commitRound commits one round. What does not fit is divided further; what cannot be divided ends the execution.
func (d *driver) commitRound(ctx context.Context) error {
	if err := d.pay(ctx); err != nil {
		return err
	}
	for share := 1; ; share *= 2 {
		p := d.nextPortion(share)
		err := d.commitPortion(ctx, p)
		if !errors.Is(err, tables.ErrTooLarge) {
			return err
		}
		if p.small() {
			return d.commitOversize(ctx, p, err)
		}
	}
}

func (d *driver) commitPortion(ctx context.Context, p portion) error {
	r := d.take(p)
	d.execution.partial = !p.whole
	people := d.taskOps(p)
	drop := d.garbage[:min(len(d.garbage), max(dropSlice-len(people), 0))]
	emptied, litter := d.empties(drop)
	old := d.oldBlobs(ctx, emptied)
	blobs, err := d.rt.journal.commit(ctx, d.start.ID, d.execution.number, len(d.rounds)+1, r, d.status(d.rt.config.Now()), d.etag, append(d.besides(drop), people...)...)
	if err != nil {
		return err
	}
	d.garbage, d.litter, d.blobs = d.garbage[len(drop):], litter, d.blobs || blobs
	d.settle(r, p)
	d.sweep(ctx, old)
	return d.emit(ctx, r)
}

// besides is what a round's transaction does to other rows.
func (d *driver) besides(drop []string) []tables.Op {
	if d.lineage.kept && d.execution.number == 1 {
		return nil
	}
	partition := tables.EscapeKey(d.start.ID)
	ops := d.lineage.goesOn(partition)
	if len(d.rounds) == 0 {
		ops = d.lineage.began(partition, d.before)
	}
	for _, row := range drop {
		ops = append(ops, tables.Delete(tables.Key{Partition: partition, Row: row}, ""))
	}
	return ops
}

// settle takes note that a round is durable.
func (d *driver) settle(r round, p portion) {
	d.note()
	x := d.execution
	d.rounds, d.etag = append(d.rounds, r), ""
	d.version++
	d.committed++
	d.known = x.knownAfter(p.decided)
	d.closeTasks(p)
	x.partial = false
	if d.leave(p); p.whole {
		d.urgent = false
		d.acknowledge()
	}
}

// commitOversize ends an execution that learned or decided something which cannot be stored: trying again cannot help.
func (d *driver) commitOversize(ctx context.Context, p portion, cause error) error {
	x := d.execution
	var what event
	switch {
	case x.ended && x.end.tooLarge() || p.learned > 0 && d.learned[0].Kind == executionStarted:
		return fmt.Errorf("%w: %w", ErrPayload, cause) // an execution that cannot even begin
	case p.learned > 0:
		what = d.learned[0]
	default:
		what = x.decided[0]
	}
	f := &Failure{Message: clip(fmt.Sprintf("%s cannot be stored: %v", what.describe(), cause)), Code: codeTooLarge, Permanent: true}
	known := d.known
	x.close()
	d.discard()
	x.tasks = x.tasks[:known]
	x.people = slices.DeleteFunc(x.people, func(t *task) bool { return t.number > known })
	d.learned, d.marks = []event{{Kind: executionGivenUp, At: x.tick(), Failure: f}}, []int{1}
	x.finish(event{Kind: executionFailed, Failure: f})
	return d.commitRound(ctx)
}

// lost tells a caller that another process has the orchestration.
func lost(err error) error {
	if errors.Is(err, errLostRace) {
		return fmt.Errorf("%w: %w", ErrElsewhere, err)
	}
	return err
}
