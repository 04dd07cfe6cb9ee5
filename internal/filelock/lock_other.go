//go:build !unix

package filelock

import (
	"context"
	"os"
)

// Acquire does nothing where flock is missing: two processes may use the resource at the same time there.
func Acquire(context.Context, string) (held *os.File, err error) { return nil, nil }
