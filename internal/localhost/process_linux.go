package localhost

import "syscall"

// childAttributes makes the kernel kill the handler when the thread that started it ends, so that a killed host leaves
// no handler. Terminal signals reach only the host, which forwards them.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
