//go:build !linux

package azurite

import "os/exec"

// dieWithParent does nothing on kernels without such a service: Close ends the process.
func dieWithParent(*exec.Cmd) {}
