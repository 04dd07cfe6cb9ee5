// Package hostlock gives jobs that one process at a time should do, of all that run this program, a lock with a lease
// (the hosted job locks of the persistence document, section 2).
//
// A lock saves work, it does not protect data. When a lease has ended is judged by the clocks of the machines, because a
// table does not tell its own time before a write; and a process that stands still for longer than its lease does not
// know that it has lost it. So two processes may, rarely, work at once, and every job under a lock has to be idempotent.
//
// # Storage
//
// The package owns the table hostLocks: one row a job, PartitionKey is the job's name, RowKey "lock". The row stays when
// the lock is free, and then says who had it last. Every change is compare-and-set by ETag.
package hostlock
