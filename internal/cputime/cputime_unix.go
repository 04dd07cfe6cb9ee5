//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Used returns the processor time that the process has used, in the program and in the system on its behalf. The error
// is that of the system call.
func Used() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
