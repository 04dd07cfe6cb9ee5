// Package blobs defines the part of Azure Blob Storage that this program uses: whole blobs of at most MaxSize bytes. It
// has a small Store interface, and a Store in memory (NewMemory) with the service's limits. NewBlobs in package azure
// makes the Store of the service itself; this package imports no SDK.
//
// PutIf replaces only the version that its caller has read. Get returns the data of one Put: the latest that finished
// before it, or a concurrent one. List returns every blob whose Put finished before it and that is not deleted, once
// and in order. Every failure is one of the sentinel errors, in every store. Package blobstest tests these promises for
// every store.
//
// The package owns no container or blob names: they belong to the packages that use a Store.
package blobs
