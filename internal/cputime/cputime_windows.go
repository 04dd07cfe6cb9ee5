package cputime

import (
	"syscall"
	"time"
)

// Used returns the processor time that the process has used, in the program and in the system on its behalf. The error
// is that of the system call.
func Used() (time.Duration, error) {
	var created, exited, kernel, user syscall.Filetime
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, err
	}
	if err := syscall.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return 0, err
	}
	return duration(kernel) + duration(user), nil
}

// duration returns the duration of a Filetime, which counts 100 ns.
func duration(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
