// Package azuritetest gives the tests of a package one Azurite: in memory, on free ports, started by the first test
// that asks and stopped after the last.
//
//	var storage azuritetest.Shared
//
//	func TestMain(m *testing.M) { storage.Main(m) }
//
//	func TestSomething(t *testing.T) { store, err := azure.NewTables(storage.Account(t)) ... }
//
// Tests share the server and run in parallel, so each makes its own tables, queues and containers; Name helps.
package azuritetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite"
)

// Shared is one Azurite for the tests of one package. The zero value is ready.
type Shared struct {
	once   sync.Once
	server *azurite.Server
	err    error
}

// Main runs the tests, stops the server, fails on leaked goroutines and exits. Call it in TestMain.
func (s *Shared) Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(stopping{m, s}, options...)
}

// Account starts the server if need be and says how to reach it. Without Node.js the test fails.
func (s *Shared) Account(t testing.TB) azure.Account {
	t.Helper()
	s.once.Do(func() {
		s.server, s.err = azurite.Start(context.Background(), azurite.Config{})
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server.Account()
}

// Name makes a name that is legal and unique for tables, queues and containers alike.
func Name(prefix string) string {
	id := uuid.New()
	return fmt.Sprintf("%s%x", prefix, id[:])
}

// stopping is a testing.M that stops the server after the tests, before goroutines are counted.
type stopping struct {
	m *testing.M
	s *Shared
}

// Run runs the tests.
func (r stopping) Run() int {
	code := r.m.Run()
	if r.s.server == nil {
		return code
	}
	if err := r.s.server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
