//go:build !unix

package filelock

import (
	"context"
	"os"
)

// Acquire does nothing on systems without flock: there, two processes may use the resource at the same time.
func Acquire(context.Context, string) (held *os.File, err error) { return nil, nil }
