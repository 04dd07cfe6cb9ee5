// Package poller reads database tables in the order of their commits, and hands on what it finds, batch by batch. How
// far it has come (the checkpoint) and who may go on (the lease) are one state document, which changes only by
// compare-and-set.
//
// It promises at least once: every row that a Source gives is delivered, in the order of the source, before the
// checkpoint passes it, however often processes crash, stand still or lose answers. A batch is delivered again when its
// commit is not known to have gone in; its rows then have the same event ids. A fencing token grows with every change of
// owner, and never goes back; of the owners of one token only one can commit. No decision rests on the clock of a node:
// the state store's clock and the time that passes on a node are all that is used. What a handler does to the outside is
// fenced only where the outside looks at the token.
//
// It owns one blob a poller, {poller}.json in the container db-state, or one row a poller in the table dbState
// (PartitionKey is the poller's name, RowKey "state"). Documents are never deleted, because the token is in them: Retire
// leaves a tombstone.
package poller
