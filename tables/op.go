package tables

import "fmt"

// Insert creates an entity that must not exist yet.
func Insert(e Entity) Op { return Op{Kind: OpInsert, Entity: e} }

// Replace replaces an entity that must exist, with e.ETag if that is set.
func Replace(e Entity) Op { return Op{Kind: OpReplace, Entity: e} }

// Upsert creates an entity or replaces the existing one, regardless of its ETag.
func Upsert(e Entity) Op { return Op{Kind: OpUpsert, Entity: e} }

// Delete removes an entity that must exist, with this ETag unless it is "".
func Delete(key Key, etag string) Op {
	return Op{Kind: OpDelete, Entity: Entity{Key: key, ETag: etag}}
}

// String returns the kind for errors.
func (k OpKind) String() string {
	switch k {
	case OpInsert:
		return "insert"
	case OpReplace:
		return "replace"
	case OpUpsert:
		return "upsert"
	case OpDelete:
		return "delete"
	}
	return fmt.Sprintf("unknown operation %d", int(k))
}

// OpError names the operation of an Apply that failed.
type OpError struct {
	// Index is the index of the operation in the Apply.
	Index int
	// Key is the operation's entity.
	Key Key
	// Err is one of this package's errors, with detail.
	Err error
}

// Error names the operation, its key and the reason.
func (e *OpError) Error() string {
	return fmt.Sprintf("operation %d on %s: %v", e.Index, e.Key, e.Err)
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }
