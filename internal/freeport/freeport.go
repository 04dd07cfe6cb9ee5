// Package freeport reserves TCP ports on 127.0.0.1 for a server that another process will start, or as ports without a
// server.
//
// A program that listens on port 0, closes and passes the number on takes a risk: until the server listens, any process
// may get the same port. The system assigns a reserved port to no other process, and yet a server that asks for its
// number can have it. Before and after that, connections to it are refused. The package owns no storage keys.
package freeport

// Port is a reserved port.
type Port struct {
	// Number is the port number.
	Number  int
	release func() error
}

// Close ends the reservation. A running server continues.
func (p *Port) Close() error { return p.release() }
