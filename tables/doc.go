// Package tables is Azure Table Storage as this program uses it: a small Store interface, and a Store in memory
// (NewMemory) that keeps the service's promises and enforces its limits. The Store of the service itself is NewTables in
// package azure; this package imports no SDK.
//
// It promises: an Apply is atomic; a key is inserted once, whoever else tries; Replace and Delete see concurrent
// changes through ETags; a page's entities ascend. Every failure is one of the sentinel errors, whichever store it comes
// from, and all stores check a request against the service's limits with the same code before anything is sent, so
// that code which runs in memory runs in Azure. Package tablestest tests these promises for every store.
//
// It owns no storage keys: tables and their rows belong to the packages that use a Store. What it does own is the form
// of a key that is built from outside data (EscapeKey) and of a text that spans several properties (PutText).
package tables
