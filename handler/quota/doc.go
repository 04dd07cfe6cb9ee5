// Package quota bounds the cost that one caller can cause in storage.
//
// The unit is a storage transaction: one call of a table, queue or blob store. Tables, Queues and Blobs charge each call to the
// callers of the request in its context. A caller has a token bucket, which fills at a steady rate, and a number of calls that may
// be in flight:
//
//   - Admit refuses a request whose caller has used up its bucket, before the request does anything. A request that was admitted is
//     never refused by its quota later: its calls are charged, also below zero.
//   - A call beyond those in flight waits for one of the same caller's calls to end. One caller alone cannot make storage busy for
//     the others, so internal/outage sees an outage only if storage has one.
//
// Contexts without a request (invocations, timers, loads that Free detached) are never charged and never wait. The number of buckets
// is bounded; full ones go first, because a full bucket is the same as a new one.
//
// A Sampler bounds in the same way the records that a caller can cause. The package owns no storage keys.
package quota
