//go:build !linux

package azurite

import "os/exec"

// dieWithParent does nothing where there is no such service of the kernel: Close ends the process.
func dieWithParent(*exec.Cmd) {}
