// Package outage lets calls of storage wait while storage does not answer. Tables, Queues and Blobs put it around the three
// storage seams; what a call does there is a matter of its context:
//
//   - Wait: the call waits, and is repeated, until storage answers or the context ends. For work that holds something meanwhile,
//     such as the host's lease of a message: to fail would hand it back to somebody who cannot take it.
//   - Hurry: the call fails at once while it is known that storage does not answer, with ErrUnavailable. For requests of people
//     and other systems, who are told to come again.
//   - neither: the call is passed on as it is.
//
// An outage of a service (tables, queues or blobs) is this: a call that the adapter has repeated in vain got no answer, or was
// refused as busy, and a cheap read right after it got no answer either. Any answer is one, also "not found" and "access denied".
// So what is wrong with one row, one partition or one role is no outage. What one call has found out is known to all: while
// an outage lasts there is one read at a time, with growing pauses, however many wait, and none when nobody waits. When it is over,
// those that wait go on one after the other.
//
// A call that waits is repeated as the adapter in package azure repeats one: its request may have been applied although the answer
// was lost. The promises of the stores allow for it: an insert may report ErrExists, and a change with an ETag ErrPrecondition or
// ErrNotFound, for what an earlier try did. Nothing that compares is ever applied twice. One call is not repeated, SendHidden: who
// keeps a message hidden has to know of it. An error that says that nothing was applied
// (ErrThrottled) is given only if that holds for all tries.
//
// It stores nothing and owns no storage keys; its reads are of rows, queues and blobs that need not exist.
package outage
