package handlertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Network is an in-memory network, on which apps reach each other, and servers of the test, by address. Its
// connections do not block the time of a bubble. Pass its Dial to the apps (handler.Config.Dial).
type Network struct {
	t testing.TB

	mu    sync.Mutex
	hosts map[string]*listener
	down  map[string]bool
}

// NewNetwork makes a network without hosts. It ends with the test.
func NewNetwork(t testing.TB) *Network {
	return &Network{t: t, hosts: map[string]*listener{}, down: map[string]bool{}}
}

// Serve serves a handler at an address, such as 127.0.0.1:7071.
func (n *Network) Serve(address string, h http.Handler) {
	n.t.Helper()
	l := &listener{address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	n.hosts[address] = l
	n.mu.Unlock()
	server := &http.Server{Handler: h}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) }) // http.ErrServerClosed
	n.t.Cleanup(func() {
		_ = server.Close()
		served.Wait()
	})
}

// Down disconnects an address, or connects it again. Existing connections stay.
func (n *Network) Down(address string, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down[address] = down
}

// Dial connects to an address.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l, down := n.hosts[address], n.down[address]
	n.mu.Unlock()
	if l == nil || down {
		return nil, fmt.Errorf("connect to %s: %w", address, errRefused)
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, fmt.Errorf("connect to %s: %w", address, errRefused)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errRefused: an address has no listener.
var errRefused = errors.New("connection refused")

// listener accepts the connections to an address.
type listener struct {
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return address(l.address) }

// address is the address of a listener.
type address string

// Network implements [net.Addr].
func (address) Network() string { return "memory" }

// String implements [net.Addr].
func (a address) String() string { return string(a) }
