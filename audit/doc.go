// Package audit records who changed what: one entry for every change that a person or a program makes through any door, and
// for every refusal of one.
//
// What it promises:
//   - There is no change without its entry: Log.Begin writes it before the change is made, and who cannot write it must not
//     make the change. An entry whose End is missing says that nobody knows whether the change was made: its process ended
//     in between.
//   - An entry is never changed. Entries and their ends are only inserted, so a role that cannot do more is enough
//     (docs/security.md); Retention alone deletes, whole months that are over.
//   - An entry costs a transaction, and its end another. A page of a list costs one or two, by time, by target or by
//     principal, however many entries there are, and one more for each month that has none of them.
//
// It owns one table ("audit"). A partition is a month, "2026-11". Each entry is there three times, in one transaction, and
// so is its end, behind it:
//
//	e-{place}, e-{place}~                     all, newest first
//	t-{digest of the target}-{place}, ...~    by target
//	p-{digest of the principal}-{place}, ...~ by principal
//
// where the place is the time, counted backwards in microseconds, and the entry's id.
package audit
