// Package quota limits the storage costs of one caller.
//
// The unit is a storage transaction: one call of a table, queue or blob store. Tables, Queues and Blobs charge each
// call to the callers of the request in its context. A caller has a token bucket, which fills at a steady rate, and a
// limit of calls in flight:
//
//   - Admit refuses a request whose caller has used up its bucket, before the request does anything. An admitted
//     request is never refused by its quota later: its calls are charged, also below zero.
//   - A call beyond the limit waits until one of the same caller's calls ends. So one caller alone cannot make
//     storage busy for the others, and internal/outage detects an outage only if storage has one.
//
// Contexts without a request (invocations, timers, loads that Free detached) are never charged and never wait. The
// number of buckets is limited; full ones are removed first, because a full bucket is the same as a new one.
//
// A Sampler limits the records of a caller in the same way. The package owns no storage keys.
package quota
