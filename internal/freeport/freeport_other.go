//go:build !linux

package freeport

import (
	"fmt"
	"net"
)

// Reserve finds a free port. It is not kept free here: other systems do not let a second socket listen on a bound port.
func Reserve() (*Port, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	number := l.Addr().(*net.TCPAddr).Port
	return &Port{Number: number, release: func() error { return nil }}, l.Close()
}
