// Package nodes lets the processes of an app see that one of them has died, and has one of the others go on with what it had in
// hand. A Functions host keeps what it has received hidden for ten minutes, whatever becomes of it; nobody has to wait for that,
// because what a process works on is in the tables.
//
// A process with work in hand is alive to the others as long as its sign of life stays hidden: one message in a queue that every
// host of the app listens to. The node keeps it hidden by updates. When it stops doing so, the queue shows the message, a living
// host receives it, and its handler takes over. No clocks are compared, and nobody who is idle asks for anything.
//
// What is promised:
//
//   - A node confirms its sign of life before each commit ([Node.Confirm]). So nothing is committed that nobody would find, and a
//     process that was frozen learns that it was taken over before it goes on.
//   - One row decides about each sign of life, by its insert: either the node drops the sign and goes on with another one, or one
//     other node takes over. A node that was taken over is fenced: it goes on with new work under another name.
//   - A takeover that is broken off is finished by whoever takes over from the one that had begun it.
//   - A node with work makes 6 requests a minute for the message and 1 for its row, and one to begin; a node without makes none.
//     What a node says of itself ([Node.Say]) costs one more when it changes.
//
// The message is the only one of its kind in its queue, beside those of others, which [Node.Receive] leaves alone. If it is lost,
// [Node.Sweep] finds the row of a node that has not been seen for a while.
//
// The package owns the partition "nodes" of the table hostLocks: node-{name}, which a node writes of itself, and
// sign-{name}-{number}, which ends a sign of life.
package nodes
