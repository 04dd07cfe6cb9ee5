// Package healthtest is a management endpoint for tests: an HTTP server with the protocol of health.HTTP, with
// components that are unhealthy, do not answer, or answer badly. It keeps everything in memory.
package healthtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
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

	mu      sync.Mutex
	answers map[string]map[string]Answer // by instance and component
	lists   []Answer
	looks   map[string]int
}

// Answer is the answer of a component.
type Answer struct {
	// Status is the HTTP status, 0 for 200, and Body the body.
	Status int
	Body   string
	// Hang leaves the request unanswered until its sender cancels it.
	Hang bool
	// Cut closes the connection at the first request.
	Cut bool
}

// Pass returns the answer of a healthy component.
func Pass() Answer { return Answer{Body: `{"status":"pass"}`} }

// Warn returns the answer of a degraded component.
func Warn() Answer { return Answer{Body: `{"status":"warn","output":"the disk is nearly full"}`} }

// Fail returns the answer of an unhealthy component.
func Fail() Answer {
	return Answer{Status: http.StatusServiceUnavailable, Body: `{"status":"fail","output":"no database"}`}
}

// New makes a server without a listener: only Client reaches it, also from inside of a bubble of testing/synctest.
func New() *Server {
	return &Server{URL: "http://health.test", answers: map[string]map[string]Answer{}, looks: map[string]int{}}
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
	mux.HandleFunc("GET /instances/{instance}/components", s.list)
	mux.HandleFunc("GET /instances/{instance}/components/{component}/health", s.look)
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
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return recorder.Result(), nil
}

// Set sets the answer of an instance's component from now on.
func (s *Server) Set(instance, component string, a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers[instance] == nil {
		s.answers[instance] = map[string]Answer{}
	}
	s.answers[instance][component] = a
}

// Spoil sets the answers to the next requests for lists of components, one each.
func (s *Server) Spoil(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = append(s.lists, answers...)
}

// Forgive discards the unused answers of Spoil.
func (s *Server) Forgive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = nil
}

// Looks returns the number of requests to a component.
func (s *Server) Looks(instance, component string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks[instance+"\n"+component]
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	var spoiled *Answer
	if len(s.lists) > 0 {
		spoiled, s.lists = &s.lists[0], s.lists[1:]
	}
	names := slices.Sorted(maps.Keys(s.answers[r.PathValue("instance")]))
	s.mu.Unlock()
	if spoiled != nil {
		say(w, r, *spoiled)
		return
	}
	if names == nil {
		names = []string{}
	}
	body, err := json.Marshal(map[string][]string{"components": names})
	if err != nil {
		panic(err)
	}
	say(w, r, Answer{Body: string(body)})
}

func (s *Server) look(w http.ResponseWriter, r *http.Request) {
	instance, component := r.PathValue("instance"), r.PathValue("component")
	s.mu.Lock()
	s.looks[instance+"\n"+component]++
	a, ok := s.answers[instance][component]
	if a.Cut {
		first := a
		first.Cut = false
		s.answers[instance][component] = first
	}
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	say(w, r, a)
}

func say(w http.ResponseWriter, r *http.Request, a Answer) {
	if a.Cut {
		panic(http.ErrAbortHandler)
	}
	if a.Hang {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/health+json")
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	w.WriteHeader(a.Status)
	// The client may be gone.
	_, _ = io.WriteString(w, a.Body)
}
