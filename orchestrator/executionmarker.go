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

// executionMarker is the row x-{execution} of an execution. The rounds of old executions are deleted, so that an
// orchestration that runs for ever does not grow. A process that has missed this must not insert a round where one was
// deleted. Therefore every round of an execution, and the start of the next one, require the execution's marker, which
// is deleted first.
//
// Executions that were started from outside are kept, because a restart needs their inputs. Their marker is inserted
// by the start of the next execution, which can therefore happen only once. Executions of a series, in which runs
// follow each other under one id, are deleted like those that continued as new.
type executionMarker struct {
	number int // 0 for none
	// kept is set if the rows of the execution are not deleted.
	kept bool
}

func (g storedExecution) marker() executionMarker {
	started, ok := g.start()
	return executionMarker{g.number, ok && max(started.start().First, 1) == g.number && !started.start().Series}
}

func executionKey(execution int) string { return fmt.Sprintf("%s%08d", executionPrefix, execution) }

func (l executionMarker) entity(partition string) tables.Entity {
	return tables.Entity{Key: tables.Key{Partition: partition, Row: executionKey(l.number)}}
}

// startOps returns the operations on markers in the transaction of the execution's first round.
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

// roundOps returns the operations on markers in the transaction of every other round.
func (l executionMarker) roundOps(partition string) []tables.Op {
	if l.kept {
		return nil
	}
	return []tables.Op{tables.Replace(l.entity(partition))}
}

// rows returns the keys of the execution's rows, in the order in which they may be deleted.
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

// executionsWithBlobs returns the earlier executions that have blobs and whose rows will be deleted (obsoleteRows).
// The attempts before the latest are kept, and so are their blobs.
func executionsWithBlobs(all []storedExecution) []int {
	var numbers []int
	chain := all[len(all)-1].firstAttempt()
	for _, g := range all[:len(all)-1] {
		if g.blobs && !g.marker().kept && (g.old || g.number < chain) {
			numbers = append(numbers, g.number)
		}
	}
	return numbers
}

// isRowOf reports whether a row belongs to an execution.
func isRowOf(execution int, row string) bool {
	return row == executionKey(execution) || strings.HasPrefix(row, fmt.Sprintf("%s%08d-", roundPrefix, execution))
}

// emptiedExecutions divides the executions that have blobs into those that have no rows left once drop is deleted, and
// the others.
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

// listBlobs lists the blobs of executions. It has to run before their rows are deleted: while rows exist, no other
// orchestration can have the id, and the blobs under it.
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

// deleteBlobs deletes blobs that are no longer named. SweepBlobs finds those that it cannot delete, or that a crash
// leaves.
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
	d.log().Warn("payloads that are not needed any more stay for now", "error", err.Error())
}

// obsoleteRows divides the rows before the latest execution into those that are no longer needed, and those that will
// become obsolete with the next execution.
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
