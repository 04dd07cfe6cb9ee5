// Package direct has a process take at once what it has put into a queue itself. A host that has nothing to do looks into its queues
// every ten seconds, and whoever starts an orchestration, raises an event or sends a command would wait for that.
//
// [Store] stands before a queues.Store. A message that is sent to a queue which the process serves is sent hidden, and worked on
// by the process as a host's delivery would be; when that is done, it is deleted with the receipt of the sender. The message is the
// insurance: when the process dies, the queue shows it, and some host takes it.
//
// What is promised:
//
//   - Send returns when the message is in the queue, as it does without this package. What follows does not change its result.
//   - A message becomes visible Config.Insurance after the process has died, or Config.Late after its time if it is due later. While the
//     process works on it, the message stays hidden. If that cannot be renewed, another process may take it, too, which is
//     the conflict that a slow host makes, and does no harm.
//   - Work that fails leaves its message for a host, after Config.Retry and with the attempt counted. What is put back, because the
//     program stops or is drained, is visible when it is said to be, and counts no attempt.
//   - No more than Config.Limit messages of one queue are worked on at once, and no more than Config.Timers wait for their time. What is
//     above that, or due later than Config.Near, is sent as without this package.
//   - Two requests for each message, to send and to delete it, and one more for each half of Config.Insurance that the work lasts. A host
//     makes three.
//
// It owns no storage keys. The messages are those of whoever sends them.
package direct
