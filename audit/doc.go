// Package audit records every change that a user or a program makes through any entry point, and every refused change.
//
// Promises:
//   - Every change has its entry: Log.Begin writes it before the change, and a caller that cannot write it must not
//     make the change. An entry without an End means that the outcome is unknown: its process ended in between.
//   - An entry is never changed. Entries and their ends are only inserted, so a role that allows inserts is enough
//     (docs/security.md). Only Retention deletes, whole months that are over.
//   - An entry costs a transaction, and its end another. A page of a list, by time, target or principal, costs one or
//     two queries, regardless of the number of entries, and one more for each month without any.
//
// It owns one table ("audit"). A partition is a month, "2026-11". Each entry has three rows, written in one
// transaction, and so has its end, after it:
//
//	e-{place}, e-{place}~                     all, newest first
//	t-{digest of the target}-{place}, ...~    by target
//	p-{digest of the principal}-{place}, ...~ by principal
//
// The place is the time, counted backwards in microseconds, and the entry's id.
package audit
