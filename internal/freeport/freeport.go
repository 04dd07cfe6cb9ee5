// Package freeport reserves TCP ports on 127.0.0.1 for a server that another process will start, or that nobody shall start.
//
// Who listens on port 0, closes and hands the number on has no more than luck: until the server listens, anybody may be given
// the same port. A reserved port is given to nobody else as long as it is reserved, and yet a server that asks for it by its
// number can have it; before and after that, connections to it are refused. It owns no storage keys.
package freeport

// Port is a reserved port.
type Port struct {
	// Number is the port's.
	Number  int
	release func() error
}

// Close ends the reservation. A server that listens goes on.
func (p *Port) Close() error { return p.release() }
