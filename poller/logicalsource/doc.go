// Package logicalsource reads inserts, updates, deletes and truncations of PostgreSQL tables as a poller.Source, by logical decoding: out
// of a replication slot with the plugin pgoutput, whose publications say which tables. It uses SQL functions and no replication
// connection, so it reads in short statements, and nothing has to stay connected between two ticks.
//
// # What it promises
//
// Every change of a published table whose transaction has committed since the slot was made comes at least once, in the order of commits,
// and within a transaction in the order of the changes. There is no other condition: neither clocks nor sequences nor long transactions
// matter, and a row that is changed twice comes twice. What was there before the slot does not come.
//
// A place is a poller.LogPosition. The slot is told to forget only what is in front of the cursor of a Fetch, which is the poller's
// checkpoint: what was not committed comes again, at the same places. It may be read from any place that the slot still has. A place that
// it has no more is ErrSlotLost, and one that the server has not reached yet is sqlsource.ErrWentBack: neither passes anything over.
//
// # Rows
//
// Data has the columns as package sqlsource writes them, and the member "$change" (see Change). Key has the columns of the replica
// identity: those of the primary key, as a rule. Of a deleted row Data has the key alone, or all columns with REPLICA IDENTITY FULL. A
// large value that an update has left as it was is not in the log: it is left out and named in Change.Unchanged, but with REPLICA
// IDENTITY FULL, which logs it. A truncation is one row a table, without a key. Arrays, composites and what extensions bring are written by
// the server as the types are now; one whose type is gone since then is text.
//
// # Limits
//
// The server decodes whole transactions, into a file of its own when they are large, and gives them out through a cursor, so that one of
// any size takes little memory here. The statement has Timeout to do so: a transaction that takes longer to decode is an error, until
// Timeout is raised. The cursor stays open for the next Fetch, for Timeout at most; after that, or in another process, the transaction is
// decoded once more.
//
// It makes and drops neither slot nor publication. One slot is for one poller. No error has the connection string in it. The package
// owns no storage keys.
package logicalsource
