// Package nodes lets the processes of an app detect that one of them has died, so that another one continues its work.
// A Functions host hides a received message for ten minutes, even if its process dies. No process has to wait for
// that, because the work in progress is recorded in the tables.
//
// A process with work is alive to the others as long as its sign of life stays hidden. The sign is one message in a
// queue that every host of the app listens to. The node keeps it hidden by updates. When it stops doing so, the queue
// shows the message, a living host receives it, and its handler takes over. No clocks are compared, and idle nodes
// make no requests.
//
// Guarantees:
//
//   - A node confirms its sign of life before each commit ([Node.Confirm]). So other nodes can find everything that is
//     committed, and a process that was frozen learns that it was taken over before it continues.
//   - One row decides about each sign of life, by its insert: either the node drops the sign and continues with
//     another one, or one other node takes over. A node that was taken over is fenced: it continues with new work
//     under another name.
//   - An interrupted takeover is finished by the node that takes over from the one that had begun it.
//   - A node with work makes 6 requests a minute for the message and 1 for its row, and one to begin; a node without
//     work makes none. A change of its published text ([Node.Say]) costs one more.
//
// The message is the only one of its kind in its queue. [Node.Receive] ignores other messages. If it is lost,
// [Node.Sweep] finds the row of a node that has not been seen for a while.
//
// The package owns the partition "nodes" of the table hostLocks: node-{name}, which a node writes about itself, and
// sign-{name}-{number}, which ends a sign of life.
package nodes
