// Package poller reads database tables in the order of their commits, and delivers the rows in batches. Its progress
// (the checkpoint) and the permission to continue (the lease) are one state document, which changes only by
// compare-and-set.
//
// Delivery is at least once. Every row of a Source is delivered, in the order of the source, before the checkpoint
// passes it, despite processes that crash, are suspended or lose answers. A batch is delivered again when its commit is
// not confirmed; its rows then have the same event ids. A fencing token grows with every change of owner and never
// decreases; only one owner can commit under a token. No decision depends on the clock of a node: only the state
// store's clock and the time that passes on a node are used. Outside effects of a handler are fenced only where the
// outside checks the token.
//
// The package owns one blob per poller, {poller}.json in the container db-state, or one row per poller in the table
// dbState (PartitionKey is the poller's name, RowKey "state"). Documents are never deleted, because they hold the
// token: Retire leaves a tombstone.
package poller
