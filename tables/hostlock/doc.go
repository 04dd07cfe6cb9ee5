// Package hostlock gives a job that only one process should run at a time a lock with a lease (the hosted job locks of
// the persistence document, section 2).
//
// A lock saves work; it does not protect data. Each machine judges by its own clock whether a lease has ended, because
// a table does not return its time before a write. A process that is suspended for longer than its lease does not
// notice that it has lost it. So two processes may, rarely, work at the same time, and every job under a lock has to be
// idempotent.
//
// # Storage
//
// The package owns the table hostLocks with one row per job: PartitionKey is the job's name, RowKey is "lock". The row
// of a free lock stays and names its last holder. Every change is compare-and-set by ETag.
package hostlock
