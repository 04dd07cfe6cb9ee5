// Package bulk carries an action out on all rows that a filter selects, messages of the outbox, dead letters or
// orchestrations, however many there are: as an operation that a caller starts, watches, pauses and cancels.
//
// An operation is an orchestration named as its [Kind], with which its id begins, too; it is the program's own runtime that
// makes it durable. Each activity of it works on one slice, so the invocation that drives it can end, or die, between
// any two: the next one goes on behind the last slice that was recorded. After some slices the orchestration continues as
// new, so its history does not grow with the number of rows.
//
// What is promised: every row that the filter selects while the operation runs is looked at, once or, after a crash,
// more often, which the actions bear. What it was asked for, its progress and its end can be read as long as the
// orchestration is kept. The progress counts slices that are finished: one that is interrupted, by a cancellation or
// by a failure, may have changed rows that are not counted. A rate bounds what is changed in a second; slices are then as
// short as ten seconds, so a cancellation waits no longer than that. A canary changes a few first, waits, and goes on only
// if none of them has come back as a dead letter. An operation that is paused is suspended as an orchestration: it finishes its slice,
// begins no other, and asks storage for nothing until it is resumed, by whatever process.
//
// The package owns no storage keys; the orchestrations are the runtime's.
package bulk
