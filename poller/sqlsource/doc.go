// Package sqlsource reads tables and queries of PostgreSQL, SQLite, MySQL or MariaDB, and SQL Server as a
// poller.Source. The SQL Server dialect follows its documentation and is unproven: no test has run it against a server.
//
// # Promises
//
// A row is returned when no other row can still appear before it, so that a position never skips a row whose
// transaction commits late. The source's bound determines when that is:
//
//   - BoundXID (PostgreSQL): the cursor is an xid8 column that each write sets to pg_current_xact_id(). Rows are
//     returned when all transactions up to theirs have ended. No other condition applies. A standby is sufficient.
//   - BoundRowVersion (SQL Server): the cursor is a rowversion column. Rows below min_active_rowversion() are returned.
//     No other condition applies.
//   - BoundSettle (all): the cursor is a time, or a number from a sequence. Rows are returned when they are older than
//     the settle window before the start of the oldest open transaction, whether it has written yet or not, and on
//     MySQL of the oldest running statement. A long transaction delays rows; it does not lose them. The conditions: the
//     database's clock sets the time during the transaction, or the settle window covers both the time from the reading
//     of another clock to the start and the difference of the clocks; the database generates the numbers one by one;
//     the clock does not go back; and all writers are on the server that is read. For SQLite, which does not show its
//     transactions, no transaction may be open for longer than the settle window.
//   - BoundSingleWriter (SQLite): the cursor is a whole number that grows with each write. Writes are serialized, so no
//     wait is needed.
//
// The order is by cursor and then by keys. Of a row that is changed twice between two fetches only the last version is
// read. A change that does not move the cursor is not read, and neither is a hard delete: use a column that marks
// deleted rows. The source does not report a row that no longer meets the conditions (Where).
//
// With BoundSettle and a number as the cursor, a new Source returns its first row after a settle window: it has to
// observe which number was the highest before. A time needs no such wait.
//
// # Refusals
//
// A bound that cannot be kept is ErrBound and not a silent loss: a standby or replica, whose writers are elsewhere; a
// user that does not see other users' transactions; a sequence from which sessions take values ahead, or with steps
// other than 1. A prepared transaction of PostgreSQL holds all newer rows back, because its start is unknown; so does a
// transaction of MySQL that was open before the first look. Rows without a cursor are reported as advice of Check and
// in Batch.HeldBack; those without a key are an error of both. A position that the database reads as a different one is
// ErrColumnType, as is a key or a time that could not be restored. Two rows at one position are ErrNotUnique, also if
// only the database treats their keys as equal. A position beyond the last generated number, the last transaction or
// the clock is ErrWentBack. So is a position with no row of the table at or after it, unless the table's own numbers
// show that the rows were deleted, or ExpectDeletes is set. The usual cause is a database restored from a backup. Each
// fetch queries the columns again, so that a changed table is noticed immediately.
//
// # Values
//
// Data and Key are JSON objects of the columns in their order. Numbers have all of their digits and are text when JSON
// has no such number (NaN). Times are RFC 3339 text with the database's digits, and without a zone where the column has
// none; SQLite's are as stored. Binary values are base64. PostgreSQL's arrays, ranges and intervals are as to_jsonb
// writes them.
//
// # Statements
//
// Values are always parameters, names are always quoted; a query is the operator's text. Sessions are read-only where
// the database supports that, in UTC, two at the most, and each statement ends with Timeout. PostgreSQL needs SELECT
// and, for BoundSettle, pg_read_all_stats; MySQL and MariaDB need SELECT and PROCESS; SQL Server needs SELECT and, for
// BoundSettle, VIEW SERVER STATE. No error contains the connection string.
//
// The package owns no storage keys.
package sqlsource
