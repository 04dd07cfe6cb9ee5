//go:build !unix

package localhost

import "syscall"

// childAttributes is empty where the kernel cannot tie a child to its parent: there the handler itself watches its
// parent.
func childAttributes() *syscall.SysProcAttr { return nil }
