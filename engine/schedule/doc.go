// Package schedule sends what the schedules of engines are for. A [Plan] says what there is, and when: the schedules of the
// engines' definitions, with the times that a setting gives them. A [Ticker] is called once a minute, sends what is due, and
// keeps in storage how far it has come, so that any process can go on.
//
// What it promises of every item of a schedule:
//
//   - A slot, which is an occurrence of the expression, is sent at its due time or later, never earlier, by the clock of the
//     process that sends it.
//   - What could not be sent is tried again, after pauses of up to five minutes. Of several slots that were missed, because no process
//     ran or storage was away, the latest is sent, once.
//   - Sent again, a slot has the same correlation ids, so that its messages are duplicates: after a crash, or where two processes
//     tick at once.
//   - What is new begins with the first slot after it was seen. Other times hold from the next tick on, and what the ones before
//     still owed is sent first.
//
// A tick costs no request to storage before something is due that the process knows of; every ten minutes it looks again.
//
// It owns the table schedules, which has one partition, and a row an item.
package schedule
