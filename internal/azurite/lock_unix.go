//go:build unix

package azurite

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the file for this process; the kernel gives it back when the process dies.
func lock(f *os.File) (unlock func(), err error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, err
	}
	return func() { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }, nil
}
