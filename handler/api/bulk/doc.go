// Package bulk carries an action out on all messages of the outbox that a filter selects, however many there are: as
// an operation that a caller starts, watches and cancels.
//
// An operation is an orchestration named [Name], whose id begins with [IDPrefix]; it is the program's own runtime that
// makes it durable. Each activity of it works on one slice, so the invocation that drives it can end, or die, between
// any two: the next one goes on behind the last slice that was recorded. After some slices the orchestration continues as
// new, so its history does not grow with the number of messages.
//
// What is promised: every message that the filter selects while the operation runs is looked at, once or, after a crash,
// more often, which the actions bear. What it was asked for, its progress and its end can be read as long as the
// orchestration is kept. The progress counts slices that are finished: one that is interrupted, by a cancellation or
// by a failure, may have changed messages that are not counted.
//
// The package owns no storage keys; the orchestrations are the runtime's.
package bulk
