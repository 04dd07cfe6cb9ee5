// Package updatetest is a management endpoint of components for tests: an HTTP server with the protocol of
// update.HTTP, with components that are slow, fail, and answer badly. It keeps everything in memory.
package updatetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Server is the endpoint. It is safe for concurrent use.
type Server struct {
	// URL is the address of the server.
	URL string

	mu         sync.Mutex
	components map[string]*component
	log        []string
	keys       map[string]bool
	faults     []Fault
}

type component struct {
	version, state, message string
	looks                   int // remaining checks until it is ready
}

// Fault fails the next request with its method.
type Fault struct {
	Method string
	// Applied means that the request is carried out anyway.
	Applied bool
	// Status is the answer; 0 closes the connection.
	Status int
}

// New makes a server without a listener: only Client reaches it, also from inside of a bubble of testing/synctest.
func New() *Server {
	return &Server{URL: "http://components.test", components: map[string]*component{}, keys: map[string]bool{}}
}

// Listen makes a server on a port of this machine, which ends with the test.
func Listen(t testing.TB) *Server {
	t.Helper()
	s := New()
	listening := httptest.NewServer(s.handler())
	t.Cleanup(listening.Close)
	s.URL = listening.URL
	return s
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/instances/{instance}/components/{component}", s.handle)
	return mux
}

// Client passes requests to the server without a network.
func (s *Server) Client() *http.Client { return &http.Client{Transport: direct{s.handler()}} }

type direct struct{ handler http.Handler }

// RoundTrip serves the request immediately.
func (d direct) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the connection was cut: %v", p)
		}
	}()
	recorder := httptest.NewRecorder()
	d.handler.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// Install adds a ready component to an instance.
func (s *Server) Install(instance, name, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.components[instance+"\n"+name] = &component{version: version, state: "Ready"}
}

// Version returns the version of a component; "" if it does not exist.
func (s *Server) Version(instance, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.components[instance+"\n"+name]; c != nil {
		return c.version
	}
	return ""
}

// Inject adds faults to the next requests, one each.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Log returns the applied requests, in order: "instance component version", without repeats.
func (s *Server) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// The special versions of the server: a component that gets Broken fails, Endless never gets ready, and Forbidden is
// refused.
const (
	Broken    = "0.0.0-broken"
	Endless   = "0.0.0-endless"
	Forbidden = "0.0.0-forbidden"
)

// looksUntilReady is the number of checks until a component is ready.
const looksUntilReady = 2

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.IndexFunc(s.faults, func(f Fault) bool { return f.Method == r.Method }); at >= 0 {
		f := s.faults[at]
		s.faults = slices.Delete(s.faults, at, at+1)
		if f.Applied {
			s.serve(httptest.NewRecorder(), r)
		}
		if f.Status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(f.Status)
		return
	}
	s.serve(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	instance, name := r.PathValue("instance"), r.PathValue("component")
	id := instance + "\n" + name
	c := s.components[id]
	switch r.Method {
	case http.MethodGet:
		s.look(w, c)
	case http.MethodDelete:
		s.apply(r.Header.Get("Idempotency-Key"), instance+" "+name+" -", func() { delete(s.components, id) })
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPut:
		var body struct {
			Version string `json:"version"`
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.Version == "" || body.Version == Forbidden {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.apply(r.Header.Get("Idempotency-Key"), instance+" "+name+" "+body.Version, func() {
			s.components[id] = &component{version: body.Version, state: "Updating", looks: looksUntilReady}
		})
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// apply carries out the request of a key, once.
func (s *Server) apply(key, what string, do func()) {
	if s.keys[key] {
		return
	}
	s.keys[key] = key != ""
	s.log = append(s.log, what)
	do()
}

func (s *Server) look(w http.ResponseWriter, c *component) {
	if c == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if c.looks--; c.looks <= 0 && c.version != Endless {
		c.state = "Ready"
		if c.version == Broken {
			c.state, c.message = "Failed", "it does not start"
		}
	}
	w.Header().Set("Content-Type", "application/json")
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(map[string]string{"version": c.version, "state": c.state, "message": c.message})
}
