// Package bulk applies an action to all rows that a filter selects, messages of the outbox, dead letters or
// orchestrations, in any number: as an operation that a caller starts, reads, pauses and cancels.
//
// An operation is an orchestration named as its [Kind], which is also the prefix of its id; the program's own runtime
// makes it durable. Each of its activities works on one slice, so the invocation that drives it can end, or die,
// between any two: the next one continues after the last recorded slice. After some slices the orchestration
// continues as new, so its history does not grow with the number of rows.
//
// Promises: every row that the filter selects while the operation runs is processed, once or, after a crash,
// repeatedly, which the actions tolerate. The request, the progress and the end can be read as long as the
// orchestration is kept. The progress counts finished slices: an interrupted one, by a cancellation or by a failure,
// may have changed uncounted rows. A rate bounds the changes in a second; slices then take at most ten seconds, so a
// cancellation waits no longer than that. A canary changes a few rows first, waits, and continues only if none of
// them is dead-lettered again. A paused operation is a suspended orchestration: it finishes its slice, begins no
// other, and makes no storage request until any process resumes it.
//
// The package owns no storage keys; the orchestrations are the runtime's.
package bulk
