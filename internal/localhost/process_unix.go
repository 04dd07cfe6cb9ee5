//go:build unix && !linux

package localhost

import "syscall"

// childAttributes makes terminal signals reach only the host, which forwards them. The kernel cannot tie a child to its
// parent here: the handler itself watches its parent.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
