// Package engine is the standard that every engine follows: how a queue message becomes an orchestration, and how the
// orchestration's end becomes rows of the history or a dead letter.
//
// An engine is a [Definition]: a name, a queue, an orchestrator and its operations. [Pipeline] is the one path that
// every message of every engine takes, from a delivery to its rest (standard, section 1). What it promises:
//
//   - Nothing is lost. A delivery is acknowledged (Handle returns nil) only when its run is in the history, when the
//     message is in the dead letters with its original bytes, when it has been put back into its queue, or when its
//     orchestration waits for a signal and carries the message until then.
//   - A message and its run end together. While the message comes again, the run is Retrying; who gives the message up ends
//     the run first, as Failed. A run whose code cannot go on needs no message: one dead letter tells of it.
//   - A correlation id whose run succeeded runs no more: another message with it is a duplicate.
//   - Every write is idempotent, and a message drives it that is acknowledged last: a crash at any point only repeats.
//
// # Storage
//
// The package owns the tables engineHistory (see [History]) and engineDlq (see [DeadLetters]); partition keys are the
// engines' names; and the container engine-messages (see [Claims]). It sends to the engines' queues and to the runtime's, to put messages back; such a message begins with
// a line that says what it has been through, and [Pipeline] takes that off again.
package engine
