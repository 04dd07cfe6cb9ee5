//go:build !linux

package freeport

import (
	"fmt"
	"net"
)

// Reserve finds a port that nobody listens on. Nothing keeps it free here: other systems let nobody else listen on a port
// that is bound.
func Reserve() (*Port, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	number := l.Addr().(*net.TCPAddr).Port
	return &Port{Number: number, release: func() error { return nil }}, l.Close()
}
