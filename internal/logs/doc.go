// Package logs wraps a handler of log records: [Within] adds the ids of the work in whose context a line is logged, and
// [Limit] keeps a repeated failure from filling the log.
//
// Promises:
//   - No line has a field twice: the line's own attributes win, then those of its logger, then those of its context.
//   - A line that Limit drops is counted, and the count is logged at the end of its period, or by [Limited.Close].
//   - Lines below warnings are never dropped.
//
// It stores nothing and owns no storage keys.
package logs
