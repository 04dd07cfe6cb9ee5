//go:build unix && !linux

package localhost

import "syscall"

// childAttributes makes signals of a terminal come to the host alone, which hands them on. The kernel cannot tie a child to its
// parent here: the handler's own watch on its parent has to do.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
