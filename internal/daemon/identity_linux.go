package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// identity is the user that programs run as; nil credentials are this process's own.
type identity struct{ credential *syscall.Credential }

func unprivileged(users []string) (identity, error) {
	if os.Geteuid() != 0 {
		return identity{}, nil
	}
	for _, name := range append(users, "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return identity{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return identity{}, err
		}
		return identity{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return identity{}, fmt.Errorf("none of the users %s is there: a database server does not run as root", strings.Join(users, ", "))
}

// other reports whether that is another user than this process's.
func (i identity) other() bool { return i.credential != nil }

func (i identity) own(path string) error {
	if !i.other() {
		return nil
	}
	return os.Lchown(path, int(i.credential.Uid), int(i.credential.Gid))
}

// apply makes the kernel kill the program when this process dies, and keeps a terminal's Ctrl-C from it.
func (i identity) apply(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Credential: i.credential}
}
