// Package codec encrypts payloads before they are stored and decrypts them when they are read, so that the contents of
// rows, blobs and queue messages cannot be read without the key.
//
// It wraps the stores, not the code that uses them. Config wraps a tables.Store, a queues.Store and a blobs.Store; the
// wrapped ones keep the promises of the plain ones. A Codec turns plain bytes into encrypted ones. Envelope is the
// Codec of this program: AES-256-GCM with data keys that a key-encryption key wraps (Keys). The id of that key is
// stored with the data.
//
// Promises:
//
//   - In the tables, containers and queues that Config names, no text or binary value is stored in clear, except for
//     columns that Config.Clear names. Numbers, times and truth values stay in clear.
//   - Data that was stored in clear before is read as it is, and encrypted data is read even when encryption is off
//     (Config.ReadOnly).
//   - Undecryptable data is never returned. The error is ErrKey or ErrDamaged, names the key, and is none of the errors
//     of storage, so that no caller takes it for missing or damaged data.
//   - An encrypted value is bound to its place: in another row or blob, it is ErrDamaged.
//   - A value that fits in clear also fits encrypted; "Limits" in docs/encryption.md lists the two exceptions.
//
// Storage keys: the package owns the columns Sealed, Sealed2 and so on of the tables that Config.Clear names. It
// recognizes an encrypted blob or message by its first bytes, with which no JSON text begins.
package codec
