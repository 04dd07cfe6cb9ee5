// Package direct handles a message in the process that enqueued it. An idle host polls its queues every ten seconds,
// and callers that start an orchestration, raise an event or send a command would wait for that.
//
// [Store] wraps a queues.Store. A message to a queue that the process serves is sent hidden, and handled by the
// process like a host's delivery; then it is deleted with the receipt of the sender. The message is the insurance: if
// the process dies, it becomes visible, and some host receives it.
//
// Promises:
//
//   - Send returns when the message is in the queue, as without this package. Later work does not change its result.
//   - A message becomes visible Config.Insurance after the process has died, or Config.Late after its time if it is
//     due later. While the process works on it, the message stays hidden. If the renewal fails, another process may
//     receive it, too, which is the same harmless conflict as with a slow host.
//   - Failed work leaves its message for a host, after Config.Retry and with the attempt counted. A message that is
//     requeued, because the program stops or is drained, becomes visible after the given delay, and counts no
//     attempt.
//   - At most Config.Limit messages of one queue are in progress, and at most Config.Timers wait for their time.
//     Messages beyond that, or due later than Config.Near, are sent as without this package.
//   - Each message costs two requests, to send and to delete it, and one more for each half of Config.Insurance that
//     the work lasts. A host makes three.
//
// It owns no storage keys. The messages belong to their senders.
package direct
