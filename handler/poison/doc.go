// Package poison receives the messages of the poison queues, to which the Functions host moves abandoned messages. No
// function listens to these queues: the host would poll each of them as often as any other, for rare messages.
//
// A timer calls a [Receiver]. It receives the messages of all queues in parallel, handles each message like a
// function of its queue, those of one queue one after the other, and deletes it last.
//
// Promises:
//   - A message is deleted when its handler has returned nil, and stays otherwise. It is redelivered ten minutes
//     later, without a limit: no message is abandoned twice. Handlers have to be idempotent, because a message is
//     also redelivered when the process dies, or when it cannot be deleted.
//   - A failing queue or message does not block the others. The error names the queue, and how many messages stay.
//   - A queue that does not exist is empty, and is not created.
//   - It is bounded: a run receives at most Limit messages of a queue, and ends with its context.
//   - An empty queue costs one request a run.
//
// The package stores nothing and owns no queues.
package poison
