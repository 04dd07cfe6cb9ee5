// Package codec encrypts payloads on their way into storage and decrypts them on their way out: what the program keeps in
// rows, blobs and queue messages can then be read by nobody who has no access to the key.
//
// It is a hook around the stores, not in the code that uses them. Config wraps a tables.Store, a queues.Store and a
// blobs.Store; the wrapped ones keep the promises of the plain ones, so that everything that reads and writes through them
// works as before. A Codec turns plain bytes into encrypted ones. Envelope is the Codec of this program: AES-256-GCM with
// data keys that a key-encryption key wraps (Keys), whose id stands beside the data.
//
// It promises:
//
//   - In the tables, containers and queues that Config names, no text or binary value is stored in clear, except for columns
//     that Config.Clear names. Numbers, times and truth values stay in clear.
//   - What was stored in clear before is read as it is, and what is encrypted is read even when encryption is off
//     (Config.ReadOnly).
//   - What cannot be decrypted is never handed on. The error is ErrKey or ErrDamaged, names the key, and is none of the
//     errors of storage, so that nothing takes it for missing or damaged data.
//   - An encrypted value is bound to its place: moved to another row or blob, it is ErrDamaged.
//   - What fits in clear fits encrypted, see "Limits" in docs/encryption.md for the two exceptions.
//
// Storage keys: it owns the columns Sealed, Sealed2 and so on of the tables that Config.Clear names. It knows an encrypted
// blob or message by its first bytes, with which no JSON text begins.
package codec
