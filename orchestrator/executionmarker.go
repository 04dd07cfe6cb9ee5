package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// executionMarker is an execution in the row of those that an orchestration has had. The rounds of old ones are deleted, so that
// one that goes on for ever does not grow; but a process that knows nothing of that must not insert a round where one was
// deleted. So an execution has a row of its own, which each of its rounds and the start of the next execution require to
// be there, and which goes first when it is deleted. Executions that began from outside are kept: their inputs are what a
// restart needs. Their row is inserted by the start of the next, which so happens once. Those of a series, one run after
// the other under one id, are deleted like those that continued as new.
type executionMarker struct {
	number int // 0: none
	kept   bool
}

func (g storedExecution) marker() executionMarker {
	started, ok := g.start()
	return executionMarker{g.number, ok && max(started.First, 1) == g.number && !started.Series}
}

func executionKey(execution int) string { return fmt.Sprintf("%s%08d", executionPrefix, execution) }

func (l executionMarker) entity(partition string) tables.Entity {
	return tables.Entity{Key: tables.Key{Partition: partition, Row: executionKey(l.number)}}
}

// startOps is what the first round of an execution does besides, after the one before it.
func (l executionMarker) startOps(partition string, before executionMarker) []tables.Op {
	var ops []tables.Op
	switch {
	case before.number == 0:
	case before.kept:
		ops = append(ops, tables.Insert(before.entity(partition)))
	default:
		ops = append(ops, tables.Replace(before.entity(partition)))
	}
	if !l.kept {
		ops = append(ops, tables.Insert(l.entity(partition)))
	}
	return ops
}

// roundOps is what every other round of it does besides.
func (l executionMarker) roundOps(partition string) []tables.Op {
	if l.kept {
		return nil
	}
	return []tables.Op{tables.Replace(l.entity(partition))}
}

// rows are the keys of what is stored of it, in the order in which they can be deleted.
func (g storedExecution) rows() []string {
	var rows []string
	for _, n := range g.numbers {
		if n == 1 {
			rows = append(rows, executionKey(g.number))
		}
		rows = append(rows, roundKey(g.number, n))
	}
	return rows
}

// executionsWithBlobs are the executions before the latest whose rows are deleted sooner or later, and which blobs hold something of.
func executionsWithBlobs(all []storedExecution) []int {
	var numbers []int
	for _, g := range all[:len(all)-1] {
		if g.blobs && !g.marker().kept {
			numbers = append(numbers, g.number)
		}
	}
	return numbers
}

// isRowOf says that a row is one of an execution's.
func isRowOf(execution int, row string) bool {
	return row == executionKey(execution) || strings.HasPrefix(row, fmt.Sprintf("%s%08d-", roundPrefix, execution))
}

// emptiedExecutions are the executions that have no rows any more when these are deleted, of those which blobs hold something of, and
// others.
func (d *driver) emptiedExecutions(drop []string) (emptied, others []int) {
	left := append(slices.Clone(d.obsoleteRows[len(drop):]), d.previousRows...)
	for _, execution := range d.obsoleteBlobs {
		if slices.ContainsFunc(left, func(row string) bool { return isRowOf(execution, row) }) {
			others = append(others, execution)
		} else {
			emptied = append(emptied, execution)
		}
	}
	return emptied, others
}

// listBlobs are the blobs of the executions. They are listed before the rows go: as long as those are there, no other
// orchestration has the id, whose blobs they could be.
func (d *driver) listBlobs(ctx context.Context, executions []int) []blobs.Version {
	ever := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	var found []blobs.Version
	for _, execution := range executions {
		for next, more := "", true; more; more = next != "" {
			page, then, err := d.rt.config.Blobs.ListOld(ctx, d.rt.config.Container, blobName(d.start.ID, blobOf(execution, "")), ever, next)
			if err != nil {
				d.logBlobsLeft(err)
				break
			}
			found, next = append(found, page...), then
		}
	}
	return found
}

// deleteBlobs deletes blobs that nothing names any more. What it cannot delete, or a crash keeps from being deleted, SweepBlobs
// finds.
func (d *driver) deleteBlobs(ctx context.Context, old []blobs.Version) {
	for _, blob := range old {
		err := d.rt.config.Blobs.DeleteVersion(ctx, d.rt.config.Container, blob)
		if err != nil && !errors.Is(err, blobs.ErrPrecondition) {
			d.logBlobsLeft(err)
			return
		}
	}
}

func (d *driver) logBlobsLeft(err error) {
	d.rt.config.Log.Warn("payloads that are not needed any more stay for now", "orchestration", d.start.ID, "reason", err.Error())
}

// obsoleteRows sorts what lies before the latest execution: what nobody needs any more, and what that will be true of next.
func obsoleteRows(all []storedExecution) (garbage, previous []string) {
	chain := all[len(all)-1].firstAttempt()
	for _, g := range all {
		switch {
		case g.marker().kept:
		case g.old:
			garbage = append(garbage, g.rows()...)
		case g.number < chain:
			previous = append(previous, g.rows()...)
		}
	}
	return garbage, previous
}
