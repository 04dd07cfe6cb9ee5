package freeport

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Reserve reserves a port. It binds a socket that never listens, with SO_REUSEADDR. Linux does not assign such a port
// to a socket without a fixed number, but lets sockets with that option bind its number, as those of Go and Node.js do.
func Reserve() (*Port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	number, err := bind(fd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reserve a port: %w", err), unix.Close(fd))
	}
	return &Port{Number: number, release: func() error { return unix.Close(fd) }}, nil
}

func bind(fd int) (port int, err error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return address.(*unix.SockaddrInet4).Port, nil
}
