// Package engine is the standard that every engine follows: how a queue message becomes an orchestration, and how the
// orchestration's end becomes rows of the history or a dead letter.
//
// An engine is a [Definition]: a name, a queue, an orchestrator and its operations. [Pipeline] handles every delivery of every
// engine's messages in one way (standard, section 1). What it promises:
//
//   - Nothing is lost. A delivery is acknowledged (Handle returns nil) only when its run is in the history, when the
//     message is in the dead letters with its original bytes, when it has been put back into its queue, or when its
//     orchestration waits for a signal and carries the message until then.
//   - A message and its run end together. While the message comes again, the run is Retrying. Before the message is given up,
//     the run is ended as Failed. A run whose code cannot go on needs no message: one dead letter reports it.
//   - A correlation id whose run succeeded does not run again: another message with it is a duplicate.
//   - Every write is idempotent and happens before the message that caused it is acknowledged, so a crash at any point leads to
//     no more than repetition.
//
// # Storage
//
// The package owns the tables engineHistory (see [History]) and engineDlq (see [DeadLetters]), whose partition keys are the
// engines' names, the table engineReservations, whose partition keys are correlation ids (see [Definition.Singleton]), and the
// container engine-messages (see [Claims]). It puts messages back into the engines' queues and the
// runtime's queues. Such a message begins with a header line that says what it has been through; [Pipeline] removes the header
// when the message is delivered.
package engine
