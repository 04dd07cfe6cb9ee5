package freeport

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
)

// The system does not assign the reserved port, even when all others are taken; a server that asks for its number gets
// it, repeatedly.
func TestReserve(t *testing.T) {
	t.Parallel()
	p, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", p.Number)
	for range 3 {
		if conn, err := net.Dial("tcp4", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("nobody listens, and a connection gives %v, %v", conn, err)
		}
		l, err := net.Listen("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		// The client closes first, so that no end of the connection lingers on the port.
		if err := errors.Join(conn.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
