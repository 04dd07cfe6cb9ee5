//go:build !linux

package daemon

import "os/exec"

// identity is this process's own on systems without another way.
type identity struct{}

func unprivileged([]string) (identity, error) { return identity{}, nil }

func (identity) other() bool { return false }

func (identity) own(string) error { return nil }

func (identity) apply(*exec.Cmd) {}
