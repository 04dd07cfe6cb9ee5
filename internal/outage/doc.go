// Package outage protects the calls of storage while storage is slow or does not answer. Tables, Queues and Blobs wrap
// the three storage seams. The context of a call selects its mode:
//
//   - Wait: the call waits and is repeated until storage answers or the context ends. For work that holds a lease,
//     such as a message of the host: failing would redeliver the message to a process that cannot handle it either.
//   - Hurry: the call fails immediately with ErrUnavailable while storage is known not to answer. For requests of
//     people and other systems, which retry.
//   - neither: the call is passed on unchanged.
//
// An outage of a service (tables, queues or blobs) begins when a call got no answer or was refused as busy, a cheap
// read after it got no answer either, and no other call was answered meanwhile. Every answer counts, also "not found"
// and "access denied". So a slow service, a damaged row, a throttled partition or a missing role is no outage, and any
// answer ends one. All calls share the knowledge: during an outage one read at a time is made, with growing pauses,
// and none without waiting calls.
//
// A slow service gets fewer calls at the same time: limiter adapts the number of concurrent calls, for the modes Wait
// and Hurry, to the speed of the answers. Requests of people go first, then the calls of the invocation that began
// first.
//
// A waiting call is repeated as the adapter in package azure repeats one: its request may have been applied although
// the answer was lost. The promises of the stores allow for it: an insert may report ErrExists, and a change with an
// ETag ErrPrecondition or ErrNotFound, for the result of an earlier try. Nothing that compares is applied twice. A
// call that adds a message is not idempotent. While its outcome is unknown, Send is made twice at most, and once in a
// context of storage.WithSingleTry. SendHidden is made once, because its caller has to know the message. ErrThrottled
// (nothing was applied) is returned only if it holds for all tries.
//
// The package stores nothing and owns no storage keys. It reads rows, queues and blobs that need not exist.
package outage
