// Package blobs is Azure Blob Storage as this program uses it: whole blobs of at most MaxSize bytes, a small Store
// interface, and a Store in memory (NewMemory) with the service's limits. The Store of the service itself is NewBlobs in
// package azure; this package imports no SDK.
//
// It promises that PutIf replaces only the version that its caller has read; that a Get returns the data of one Put, the latest
// that finished before it or one that runs at the same time; and that a List returns every blob whose Put finished before it and
// that is not deleted, once and in order. Every failure is one of the sentinel errors, whichever store it comes from. Package
// blobstest tests these promises for every store.
//
// It owns no container or blob names: they belong to the packages that use a Store.
package blobs
