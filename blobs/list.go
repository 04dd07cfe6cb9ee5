package blobs

import (
	"context"
	"iter"
)

// All iterates over the names of a container's blobs that begin with prefix, over all pages of List. It stops at the
// first error, which it yields with an empty name. It can be used more than once.
func All(ctx context.Context, store Store, container, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		continuation := ""
		for {
			names, next, err := store.List(ctx, container, prefix, continuation)
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			continuation = next
		}
	}
}
