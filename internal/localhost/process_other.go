//go:build !unix

package localhost

import "syscall"

// childAttributes is empty where the kernel cannot tie a child to its parent: there the handler's own watch on its
// parent has to do.
func childAttributes() *syscall.SysProcAttr { return nil }
