package azurite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/npm"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// asParent makes the test binary a program that starts an Azurite and waits to be killed. It holds the port for its
// tables.
const asParent = "ROUNDHOUSE_TEST_AZURITE_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) != "" {
		os.Exit(parent())
	}
	goleak.VerifyTestMain(m)
}

func parent() int {
	port, err := strconv.Atoi(os.Getenv(asParent))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := Start(context.Background(), Config{TablePort: port})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.Account().TableEndpoint)
	<-s.Exited()
	return 0
}

func begin(t *testing.T, c Config) *Server {
	t.Helper()
	s := testenv.Must(Start(testenv.Context(t), c))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ports(t *testing.T, a azure.Account) [3]int {
	t.Helper()
	var out [3]int
	for i, endpoint := range []string{a.BlobEndpoint, a.QueueEndpoint, a.TableEndpoint} {
		u, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if out[i], err = strconv.Atoi(u.Port()); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestDataSurvivesRestart(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	ctx := t.Context()
	p := [3]int{testenv.Port(t), testenv.Port(t), testenv.Port(t)}
	config := Config{DataDir: filepath.Join(t.TempDir(), "data"), BlobPort: p[0], QueuePort: p[1], TablePort: p[2]}
	first := begin(t, config)
	a, err := azure.FromConnectionString(first.ConnectionString())
	if err != nil || !a.Emulator {
		t.Fatalf("its connection string: %v, %v", a, err)
	}
	t.Cleanup(a.CloseIdleConnections)
	if got := ports(t, a); got != p {
		t.Errorf("it listens on %v, not on %v", got, p)
	}
	if running, err := Running(ctx, p[0], p[1], p[2]); !running || err != nil {
		t.Errorf("Running: %t, %v", running, err)
	}
	if _, err := Running(ctx, p[1], p[0], p[2]); !errors.Is(err, ErrBusy) {
		t.Errorf("Running with two ports exchanged: %v, want %v", err, ErrBusy)
	}
	key := tables.Key{Partition: "p", Row: "r"}
	table := testenv.Must(azure.NewTables(a))(t)
	queue := testenv.Must(azure.NewQueues(a))(t)
	blob, err := azure.NewBlobs(a)
	if err != nil {
		t.Fatal(err)
	}
	_, sendErr := sendFirst(ctx, queue)
	if err := errors.Join(table.CreateTable(ctx, "history"), table.Apply(ctx, "history", tables.Insert(tables.Entity{Key: key})), sendErr,
		blob.CreateContainer(ctx, "spill"), blob.Put(ctx, "spill", "b", []byte("data"))); err != nil {
		t.Fatal(err)
	}
	testenv.OK(t, first.Close())
	if running, err := Running(ctx, p[0], p[1], p[2]); running || err != nil {
		t.Errorf("Running after Close: %t, %v", running, err)
	}

	begin(t, config)
	_, tableErr := table.Get(ctx, "history", key)
	n, queueErr := queue.Length(ctx, "work")
	data, blobErr := blob.Get(ctx, "spill", "b")
	if err := errors.Join(tableErr, queueErr, blobErr); err != nil || n != 1 || string(data) != "data" {
		t.Errorf("after a restart: %v, %d messages, blob %q", err, n, data)
	}
}

func sendFirst(ctx context.Context, q *azure.Queues) (string, error) {
	if err := q.CreateQueue(ctx, "work"); err != nil {
		return "", err
	}
	return q.Send(ctx, "work", []byte("x"), 0)
}

// Accounts of one emulator share nothing.
func TestAccounts(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	ctx := t.Context()
	s := begin(t, Config{Accounts: []string{"second"}})
	key := tables.Key{Partition: "p", Row: "r"}
	for _, account := range []azure.Account{s.Account(), s.AccountNamed("second")} {
		account, err := azure.FromConnectionString(account.ConnectionString())
		if err != nil || !account.Emulator {
			t.Fatalf("%v: %v", account, err)
		}
		t.Cleanup(account.CloseIdleConnections)
		store, err := azure.NewTables(account)
		if err == nil {
			err = errors.Join(store.CreateTable(ctx, "history"), store.Apply(ctx, "history", tables.Insert(tables.Entity{Key: key})))
		}
		if err != nil {
			t.Errorf("%v: %v", account, err)
		}
	}
}

func TestRunning(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	busy := other.Listener.Addr().(*net.TCPAddr).Port
	_, err := Running(t.Context(), busy, testenv.Port(t), testenv.Port(t))
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), strconv.Itoa(busy)) || !strings.Contains(err.Error(), "Blob") {
		t.Errorf("another program: %v, want %v with the port and the service", err, ErrBusy)
	}
	if running, err := Running(t.Context(), testenv.Port(t), testenv.Port(t), testenv.Port(t)); running || err != nil {
		t.Errorf("free ports: %t, %v", running, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Running(ctx, busy, busy, busy); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	s, err := Start(t.Context(), Config{BlobPort: other.Listener.Addr().(*net.TCPAddr).Port})
	if err == nil {
		t.Fatal(s.Close(), "it started on a port that is taken")
	}
	if !strings.Contains(err.Error(), "EADDRINUSE") {
		t.Errorf("error %q does not say what Azurite said", err)
	}
}

// Not parallel with others: it changes the environment.
func TestNoNode(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context(), Config{})
	if !errors.Is(err, npm.ErrNoNode) || !strings.Contains(err.Error(), "install Node.js") {
		t.Errorf("without Node.js: %v, want %v", err, npm.ErrNoNode)
	}
}
