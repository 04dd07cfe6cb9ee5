// Package logs makes of a handler of log records that of the app: [Within] gives a line the ids of the work in whose context it is
// logged, and [Limit] keeps a failure that repeats itself from filling the log.
//
// What it promises:
//   - No line has a field twice: what the line says itself counts, then what its logger says, then its context.
//   - A line that Limit leaves out is counted, and the count is logged when its time is over, or by [Limited.Close].
//   - Lines below warnings are never left out.
//
// It stores nothing and owns no storage keys.
package logs
