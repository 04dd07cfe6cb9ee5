package docs

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// app is a running app with its own storage, as make run starts it.
type app struct {
	url, storage string
	// key is the key of its functions, keyFile its file.
	key, keyFile string
}

// start runs the app until the test ends.
func start(t *testing.T) app {
	t.Helper()
	ready := testenv.Context(t)
	server := testenv.Must(azurite.Start(ready, azurite.Config{}))(t)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	account := server.Account()
	t.Cleanup(account.CloseIdleConnections)
	queueStore := testenv.Must(azure.NewQueues(account))(t)
	blobStore := testenv.Must(azure.NewBlobs(account))(t)
	log := testenv.Must(os.Create(filepath.Join(t.TempDir(), "handler.log")))(t)
	t.Cleanup(func() { showLog(t, log) })
	key, kept := rand.Text(), filepath.Join(t.TempDir(), "key")
	testenv.OK(t, os.WriteFile(kept, []byte(key+"\n"), 0o600))
	host, err := localhost.New(localhost.Config{ScriptRoot: build(t).dist, Queues: queueStore, Blobs: blobStore, Output: log, FunctionKey: key, Env: []string{
		"AzureWebJobsStorage=" + account.ConnectionString(), "ROUNDHOUSE_CONTEXT=publisher", "ROUNDHOUSE_POLLERS=", "ROUNDHOUSE_REVIEW_ROLES=operator",
		"AzureFunctionsJobHost__extensions__queues__maxPollingInterval=00:00:00.500",
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("host: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	testenv.OK(t, host.WaitAnswer(ready, "/api/health/ready"))
	return app{url: host.URL(), storage: account.ConnectionString(), key: key, keyFile: kept}
}

// showLog closes the handler's log, and shows its end when the test has failed.
func showLog(t *testing.T, log *os.File) {
	t.Helper()
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if !t.Failed() {
		return
	}
	text, err := os.ReadFile(log.Name())
	t.Logf("the handler's log (%v):\n%s", err, text[max(0, len(text)-4000):])
}
