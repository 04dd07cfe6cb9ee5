// Package tables defines the part of Azure Table Storage that this program uses. It has a small Store interface, and a
// Store in memory (NewMemory) that keeps the service's promises and enforces its limits. NewTables in package azure
// makes the Store of the service itself; this package imports no SDK.
//
// An Apply is atomic. A key is inserted once, also when several callers try. Replace and Delete detect concurrent
// changes by ETags. The entities of a page ascend. Every failure is one of the sentinel errors, in every store. All
// stores check a request against the service's limits with the same code before they send it, so code that runs in
// memory also runs in Azure. Package tablestest tests these promises for every store.
//
// The package owns no storage keys: tables and their rows belong to the packages that use a Store. It owns the form of
// a key that is built from outside data (EscapeKey) and of a text that spans several properties (PutText).
package tables
