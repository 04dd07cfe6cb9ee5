// Package azuritetest gives the tests of a package an account of one Azurite: of the lane's (scripts/lane), or else of
// their own, in memory and on free ports, started by the first test that needs it and stopped after the last.
//
//	var storage azuritetest.Shared
//
//	func TestMain(m *testing.M) { storage.Main(m) }
//
//	func TestSomething(t *testing.T) { store, err := azure.NewTables(storage.Account(t)) ... }
//
// Packages never share an account. Tests of one package do and run in parallel, so each makes its own tables, queues
// and containers; Name helps.
package azuritetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/testenv"
)

const (
	// address is the file in a lane's folder with its server: a lane as JSON.
	address = "azurite.json"
	// accounts is the number of packages that the lane's server has accounts for.
	accounts = 64
)

// Serve starts the server of a lane and writes its accounts to the lane's folder, testenv.Servers for the tests.
func Serve(ctx context.Context, dir string) (stop func() error, err error) {
	var l lane
	for i := range accounts {
		l.Accounts = append(l.Accounts, fmt.Sprintf("lane%d", i))
	}
	s, err := azurite.Start(ctx, azurite.Config{Accounts: l.Accounts})
	if err != nil {
		return nil, err
	}
	l.Blob, l.Queue, l.Table = s.Ports()
	text, err := json.Marshal(l)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, address), text, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s.Close, nil
}

// lane is the server of a lane.
type lane struct {
	Blob, Queue, Table int // ports
	Accounts           []string
}

// Shared is the Azurite of one package's tests. The zero value is ready to use.
type Shared struct {
	once    sync.Once
	account azure.Account
	server  *azurite.Server // nil for an account of the lane's server
	err     error
}

// Main runs the tests, stops the server, fails on leaked goroutines and exits. Call it in TestMain.
func (s *Shared) Main(m *testing.M, options ...goleak.Option) { testenv.Main(m, s.Close, options...) }

// Account returns the account of this package. A -short run skips the test. Without Node.js the test fails.
func (s *Shared) Account(t testing.TB) azure.Account {
	t.Helper()
	testenv.Long(t)
	s.once.Do(func() { s.err = s.start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.account
}

// Close stops a server that this package started.
func (s *Shared) Close() error {
	s.account.CloseIdleConnections()
	if s.server == nil {
		return nil
	}
	return s.server.Close()
}

func (s *Shared) start() (err error) {
	if dir := os.Getenv(testenv.Servers); dir != "" {
		if account, ok, err := claim(dir); ok || err != nil {
			s.account = account
			return err
		}
	}
	if s.server, err = azurite.Start(context.Background(), azurite.Config{}); err == nil {
		s.account = s.server.Account()
	}
	return err
}

// claim claims an account of the lane's server that no other package has. ok is false without a server or a free
// account.
func claim(dir string) (account azure.Account, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, address))
	if errors.Is(err, os.ErrNotExist) {
		return account, false, nil
	}
	var l lane
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return account, false, fmt.Errorf("find the lane's azurite: %w", err)
	}
	for _, name := range l.Accounts {
		f, err := os.OpenFile(filepath.Join(dir, "account-"+name), os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			err = f.Close()
		}
		return azure.EmulatorAccountNamed(name, l.Blob, l.Queue, l.Table), err == nil, err
	}
	return account, false, nil
}

// Name returns a name that is legal and unique for tables, queues and containers alike.
func Name(prefix string) string {
	id := uuid.New()
	return fmt.Sprintf("%s%x", prefix, id[:])
}
