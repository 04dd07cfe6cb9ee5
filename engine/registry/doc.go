// Package registry keeps a document for every managed instance, and the lock under which engines change it (standard,
// sections 1.8 and 6). The publisher's registry and the managed application's are the same: a JSON document of which
// this package knows instanceId, tenantId, engineTablesConfig, instanceLock and registryVersion, and, of the
// operators' fields, ring and endpoints. Every other field belongs to its writer, and other writers keep it.
// Operators change documents by merge patches (Instance.Patch), which cannot change the engines' fields
// (EngineFields).
//
// The document of an app's own instance configures the tables and the retention of history and dead letters
// (EngineTablesConfig). The app records the tables that it uses for other programs (Applied).
//
// Promises:
//
//   - A change is compare-and-set: no change is lost, and each gives the document the next registryVersion.
//   - Only the job that holds the lock changes a locked document. An expired lock protects nothing: the next change
//     removes it.
//   - A write whose answer was lost is checked, not repeated, so that a change is made once.
//
// Locks compare the clocks of the processes that use them: a lock has to last longer than these differ, which the default
// of an hour does.
//
// # Storage
//
// The package owns the table "registry": one row an instance, with the partition "instance" and the escaped instance
// id as its row key. The column Document holds the document; RegistryVersion, LockJobId and LockUntilUtc repeat it
// for operators, and Writes names the last writes. In the partition "app", the row "tables" is the record of Applied.
package registry
