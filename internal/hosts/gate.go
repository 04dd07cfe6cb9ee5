package hosts

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/freeport"
)

// Gate is a proxy between hosts and storage: a shut gate makes storage unavailable, and every request is observed.
type Gate struct {
	doors []*door
}

// door is the gate of one service. It keeps its port while it is shut.
type door struct {
	port    *freeport.Port
	forward *httputil.ReverseProxy
	see     func(*http.Request)

	mu     sync.Mutex
	server *http.Server // nil while it is shut
}

// NewGate opens a gate to an account. see is called with each request before storage has it, concurrently; it may be
// nil.
func NewGate(a azure.Account, see func(*http.Request)) (*Gate, error) {
	if see == nil {
		see = func(*http.Request) {}
	}
	g := &Gate{}
	for _, endpoint := range []string{a.BlobEndpoint, a.QueueEndpoint, a.TableEndpoint} {
		target, err := url.Parse(endpoint)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("gate to %s: %w", endpoint, err), g.Close())
		}
		port, err := freeport.Reserve()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("gate to %s: %w", endpoint, err), g.Close())
		}
		forward := &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true},
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
				r.Out.Host = r.In.Host // the signature does not cover it, and links in answers stay right
			}}
		g.doors = append(g.doors, &door{port: port, forward: forward, see: see})
	}
	return g, g.Open()
}

// Account returns the account through the gate.
func (g *Gate) Account(name string) azure.Account {
	return azure.EmulatorAccountNamed(name, g.doors[0].port.Number, g.doors[1].port.Number, g.doors[2].port.Number)
}

// Shut cuts all connections, busy ones included, and refuses new ones.
func (g *Gate) Shut() error {
	var errs []error
	for _, d := range g.doors {
		errs = append(errs, d.shut())
	}
	return errors.Join(errs...)
}

// Open lets requests through. On an open gate it does nothing.
func (g *Gate) Open() error {
	var errs []error
	for _, d := range g.doors {
		errs = append(errs, d.open())
	}
	return errors.Join(errs...)
}

// Close shuts the gate and frees its ports.
func (g *Gate) Close() error {
	errs := []error{g.Shut()}
	for _, d := range g.doors {
		errs = append(errs, d.port.Close())
	}
	return errors.Join(errs...)
}

func (d *door) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", d.port.Number))
	if err != nil {
		return fmt.Errorf("open the gate: %w", err)
	}
	d.server = &http.Server{Handler: d, ErrorLog: log.New(io.Discard, "", 0)}
	go func(s *http.Server) { _ = s.Serve(listener) }(d.server) // it ends when the gate is shut
	return nil
}

func (d *door) shut() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return nil
	}
	err := d.server.Close()
	d.server = nil
	if idle, ok := d.forward.Transport.(*http.Transport); ok {
		idle.CloseIdleConnections()
	}
	if err != nil {
		return fmt.Errorf("shut the gate: %w", err)
	}
	return nil
}

// ServeHTTP forwards a request.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.see(r)
	d.forward.ServeHTTP(w, r)
}
