// Package sqlsource reads tables and queries of PostgreSQL, SQLite, MySQL or MariaDB, and SQL Server as a poller.Source.
// The SQL Server dialect is written to its documentation and unproven: no test has run it against a server.
//
// # What it promises
//
// A row comes when no other one can still come in front of it, so that a place never passes over a row whose transaction
// commits late. How that is known is the source's bound:
//
//   - BoundXID (PostgreSQL): the cursor is an xid8 column that each write sets to pg_current_xact_id(). Rows come when all
//     transactions up to theirs have ended. There is no other condition. A standby will do.
//   - BoundRowVersion (SQL Server): the cursor is a rowversion column. Rows below min_active_rowversion() come. There is no
//     other condition.
//   - BoundSettle (all): the cursor is a time, or a number that a sequence gives. Rows come when they are older than the
//     settle window before the start of the oldest transaction that is open, whether it has written yet or not, and on MySQL of
//     the oldest statement that runs. A long transaction delays rows, it does not lose them. The conditions: the database's
//     clock sets the time during the transaction, or another one does no more than the settle window before its start or apart
//     from it; the database gives the numbers one by one; the clock does not go back; and all writers are on the server that
//     is read. For SQLite, which does not show its transactions, no
//     transaction may be open for longer than the settle window.
//   - BoundSingleWriter (SQLite): the cursor is a whole number that grows with each write. Writes come one after another, so
//     there is nothing to wait for.
//
// The order is by cursor and then by keys. Of a row that is changed twice between two fetches only the last version is seen.
// A change that does not move the cursor is not seen, and neither is a hard delete: use a column that marks deleted rows.
// A row that stops meeting the conditions (Where) is not seen leaving.
//
// With BoundSettle and a number as the cursor, a new Source gives its first row after a settle window: it has to see which
// number was the highest before. A time needs no such wait.
//
// # What it refuses
//
// A bound that cannot be kept is ErrBound and not a silent loss: a standby or replica, whose writers are elsewhere; a user that
// does not see others' transactions; a sequence of which sessions take values ahead, or that goes in other steps than 1. A prepared transaction of PostgreSQL
// holds all newer rows back, for nobody can tell when it began; so does a transaction of MySQL that was open before the first look.
// Rows without a cursor are advice of Check and a reason in Batch.HeldBack; those without a key are an error of both. A place that
// the database reads as another one is ErrColumnType, as is a key or a time that could not be restored. Two rows of one place are
// ErrNotUnique, also if only the database takes their keys for the same. A place that is beyond the last number that was given,
// the last transaction or the clock is ErrWentBack, and so is one that the table has no row at or behind, unless its own numbers show
// that the rows were deleted, or ExpectDeletes is set: the database was restored from a backup, say. Each fetch asks for the
// columns anew, so that a changed table shows at once.
//
// # Values
//
// Data and Key are JSON objects of the columns in their order. Numbers have all of their digits and are text when JSON has no
// such number (NaN). Times are text as RFC 3339 has them, with the digits that the database has, and without a zone where the
// column has none; SQLite's are as they were stored. Binary values are base64. PostgreSQL's arrays, ranges and intervals are as
// to_jsonb writes them.
//
// # Statements
//
// Values are always parameters, names are always quoted; a query is the operator's text. Sessions are read only where the
// database has that, in UTC, two at the most, and each statement ends with Timeout. PostgreSQL needs SELECT and, for
// BoundSettle, pg_read_all_stats; MySQL and MariaDB need SELECT and PROCESS; SQL Server needs SELECT and, for BoundSettle, VIEW
// SERVER STATE. No error has the connection string in it.
//
// The package owns no storage keys.
package sqlsource
