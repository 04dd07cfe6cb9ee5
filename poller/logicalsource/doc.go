// Package logicalsource reads inserts, updates, deletes and truncations of PostgreSQL tables as a poller.Source, by
// logical decoding. It reads a replication slot with the plugin pgoutput; publications select the tables. It uses SQL
// functions and no replication connection, so it reads in short statements and needs no connection between two ticks.
//
// # Promises
//
// Every change of a published table that was committed since the slot was made is read at least once. The order is that
// of the commits, and within a transaction that of the changes. No other condition applies: clocks, sequences and long
// transactions do not matter, and a row that is changed twice is read twice. Changes before the slot are not read.
//
// A position is a poller.LogPosition. The slot forgets only the changes before the cursor of a Fetch, which is the
// poller's checkpoint: uncommitted changes are read again, at the same positions. Any position that the slot still has
// can be read. A position that it no longer has is ErrSlotLost, and one that the server has not reached yet is
// sqlsource.ErrWentBack: neither skips any change.
//
// # Rows
//
// Data has the columns in the form of package sqlsource, and the member "$change" (see Change). Key has the columns of
// the replica identity: usually those of the primary key. Data of a deleted row has the key only, or all columns with
// REPLICA IDENTITY FULL. A large value that an update has left unchanged is not in the log: it is omitted and named in
// Change.Unchanged, except with REPLICA IDENTITY FULL, which logs it. A truncation is one row per table, without a key.
// The server writes arrays, composites and types of extensions by the current definitions of their types; a value of a
// dropped type is text.
//
// # Limits
//
// The server decodes whole transactions, into its own file when they are large, and returns them through a cursor, so
// that any transaction takes little memory here. The statement has Timeout for that: a transaction that takes longer to
// decode is an error, until Timeout is raised. The cursor stays open for the next Fetch, for Timeout at most; after
// that, or in another process, the transaction is decoded again.
//
// The package neither makes nor drops slots and publications. One slot is for one poller. No error contains the
// connection string. The package owns no storage keys.
package logicalsource
