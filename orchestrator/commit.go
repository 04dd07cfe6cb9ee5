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
		err := d.commitRound(ctx)
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

func (d *driver) commitRound(ctx context.Context) error {
	if err := d.pay(ctx); err != nil {
		return err
	}
	r := round{Learned: d.learned, Decided: d.execution.decided}
	people := d.taskOps()
	drop := d.garbage[:min(len(d.garbage), max(dropSlice-len(people), 0))]
	err := d.rt.journal.commit(ctx, d.start.ID, d.execution.number, len(d.rounds)+1, r, d.status(d.rt.config.Now()), d.etag, append(d.besides(drop), people...)...)
	if errors.Is(err, tables.ErrTooLarge) && len(r.Decided) > 1 {
		return d.commitOversize(ctx, err)
	}
	if err != nil {
		return err
	}
	d.garbage = d.garbage[len(drop):]
	d.settle(r)
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
func (d *driver) settle(r round) {
	d.note()
	d.rounds, d.etag = append(d.rounds, r), ""
	d.version++
	d.committed++
	d.learned, d.execution.decided, d.urgent = nil, nil, false
	d.known = len(d.execution.tasks)
	d.closeTasks()
	d.acknowledge()
}

// commitOversize ends an execution whose turn decided more than a round can hold: trying again cannot help.
func (d *driver) commitOversize(ctx context.Context, cause error) error {
	x := d.execution
	x.close()
	x.decided, x.tasks = nil, x.tasks[:d.known]
	x.people = slices.DeleteFunc(x.people, func(t *task) bool { return t.number > d.known })
	x.finish(event{Kind: executionFailed, Failure: failureOf(Permanent(fmt.Errorf(
		"the turn after %s decided more than a round holds, call less at once: %w", d.learned[len(d.learned)-1].Kind, cause)))})
	r := round{Learned: d.learned, Decided: x.decided}
	if err := d.rt.journal.commit(ctx, d.start.ID, x.number, len(d.rounds)+1, r, d.status(d.rt.config.Now()), d.etag, append(d.besides(nil), d.taskOps()...)...); err != nil {
		return err
	}
	d.settle(r)
	return nil
}

// lost tells a caller that another process has the orchestration.
func lost(err error) error {
	if errors.Is(err, errLostRace) {
		return fmt.Errorf("%w: %w", ErrElsewhere, err)
	}
	return err
}
