// Package queues defines the part of Azure Queue Storage that this program uses. It has a small Store interface, and a
// Store in memory (NewMemory) that keeps the service's promises and enforces its limits. NewQueues in package azure
// makes the Store of the service itself; this package imports no SDK.
//
// Delivery is at least once. A message exists until it is deleted with the pop receipt of its latest Receive or Renew.
// It is redelivered when its visibility timeout ends, and it never expires. The order is undefined. Every failure is
// one of the sentinel errors, in every store, and all stores check a request against the service's limits with the same
// code. Package queuestest tests these promises for every store.
//
// The package owns no queue names. It owns the form of a body in a message: Send writes base64, Decode reads base64 and
// plain text.
package queues
