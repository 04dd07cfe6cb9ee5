package azurite

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the process when this one dies, and keeps a terminal's Ctrl-C from it: Close
// decides when it ends.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
