// Package queues is Azure Queue Storage as this program uses it: a small Store interface, and a Store in memory
// (NewMemory) that keeps the service's promises and enforces its limits. The Store of the service itself is NewQueues in
// package azure; this package imports no SDK.
//
// It promises at least once: a message stays until it is deleted with the pop receipt of its latest Receive or Renew,
// it comes back when its visibility ends, and it never expires. Nothing is promised about order. Every failure is one
// of the sentinel errors, whichever store it comes from, and all stores check a request against the service's limits
// with the same code. Package queuestest tests these promises for every store.
//
// It owns no queue names. What it does own is the form of a body in a message: Send writes base64, Decode reads
// base64 and plain text alike.
package queues
