//go:build unix

// Package filelock gives one process at a time the use of a shared resource: a folder during installation, a test
// server. It owns the given files and no storage keys.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// interval is the time between two attempts at a lock that another process holds.
const interval = 100 * time.Millisecond

// Acquire locks the file at path, which it creates, or waits until ctx ends. The lock is released when this process and
// those that inherit the open file have closed it or are dead. The file stays: removing it could break the lock of a
// waiting process.
func Acquire(ctx context.Context, path string) (held *os.File, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(&os.PathError{Op: "lock", Path: path, Err: err}, f.Close())
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		}
	}
}
