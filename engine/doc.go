// Package engine implements the standard for engines: a queue message becomes an orchestration, and the
// orchestration's end becomes rows of the history or a dead letter.
//
// An engine is a [Definition]: a name, a queue, an orchestrator and its operations. [Pipeline] handles every delivery
// of every engine's messages in one way (standard, section 1). Promises:
//
//   - Nothing is lost. A delivery is acknowledged (Handle returns nil) only when its run is in the history, when the
//     message is in the dead letters with its original bytes, when it has been requeued, or when its orchestration
//     waits for a signal and carries the message until then.
//   - A message and its run end together. While the message is redelivered, the run is Retrying. Before the message
//     is dead-lettered, the run ends as Failed. A stalled run needs no message: one dead letter reports it.
//   - A correlation id whose run succeeded does not run again: another message with it is a duplicate.
//   - Every write is idempotent and happens before the message that caused it is acknowledged, so a crash at any point leads to
//     no more than repetition.
//
// # Storage
//
// The package owns the tables engineHistory (see [History]) and engineDlq (see [DeadLetters]), whose partition keys
// are the engines' names, the table engineReservations, whose partition keys are correlation ids (see
// [Definition.Singleton]), and the container engine-messages (see [Claims]). It requeues messages in the engines'
// queues and the runtime's queues. A requeued message begins with a header line with its previous attempts;
// [Pipeline] removes the header when the message is delivered.
package engine
