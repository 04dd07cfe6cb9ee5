// Package registry keeps a document for every managed instance, and the lock under which engines change it (standard,
// sections 1.8 and 6). The publisher's registry and the managed application's are the same: a JSON document of which this
// package knows instanceId, tenantId, engineTablesConfig, instanceLock and registryVersion, and, of what people say, ring and
// endpoints; every other field belongs to who writes it, and survives who does not know it. People change documents by merge
// patches (Instance.Patch), which leave alone what engines write (EngineFields).
//
// The document of an app's own instance says where the app keeps history and dead letters, and for how long
// (EngineTablesConfig). What an app has made of that is noted for programs that work on its tables (Applied).
//
// What it promises:
//
//   - A change is compare-and-set: nobody's change is lost, and each gives the document the next registryVersion.
//   - A document that is locked is changed by the job that holds the lock, and by nobody else. A lock that has expired
//     protects nothing: who changes the document then takes it off.
//   - A write whose answer was lost is found out, not repeated, so that a change is made once.
//
// Locks compare the clocks of the processes that use them: a lock has to last longer than these differ, which the default
// of an hour does.
//
// # Storage
//
// The package owns the table "registry": one row an instance, with the partition "instance" and the escaped instance id
// as its row key. The column Document holds the document; RegistryVersion, LockJobId and LockUntilUtc repeat it for
// people, and Writes names the last writes. Beside them, in the partition "app", the row "tables" is the note of Applied.
package registry
