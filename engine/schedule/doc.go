// Package schedule sends the messages of the engines' schedules. A [Plan] holds the schedules of the engines'
// definitions, with the times of a setting. A [Scheduler] ticks once a minute, sends due messages, and stores its
// progress, so that any process can continue.
//
// Promises for every target of a schedule:
//
//   - A slot, which is an occurrence of the expression, is sent at its due time or later, never earlier, by the clock of the
//     process that sends it.
//   - A failed slot is retried, after pauses of up to five minutes. Of several slots that were missed, because no
//     process ran or storage was unavailable, the latest is sent, once.
//   - A repeated slot has the same correlation ids, so that its messages are duplicates: after a crash, or when two
//     processes tick at the same time.
//   - A new target begins with the first slot after it was seen. Changed times apply from the next tick on, and a
//     pending slot of the previous times is sent first.
//
// A tick costs no request to storage until a known target is due; every ten minutes it reads storage again.
//
// It owns the table schedules, which has one partition, and a row for each target.
package schedule
