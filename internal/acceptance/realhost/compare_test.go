package realhost

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

// storage starts an Azurite for this test: compared apps share nothing.
func storage(t *testing.T) azure.Account {
	t.Helper()
	server := testenv.Must(azurite.Start(t.Context(), azurite.Config{}))(t)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.Account()
}

// startLocal starts the local host with the same app. Without the queue store, its queue functions cannot run, as on
// the real host without its extension.
func startLocal(t *testing.T, a app) (url string) {
	t.Helper()
	host := runLocal(t, a, nil)
	testenv.Until(t, "the app is ready", func() bool { return answers(t.Context(), host.URL()+"/api/health/ready") })
	return host.URL()
}

// runLocal starts the local host.
func runLocal(t *testing.T, a app, queueStore queues.Store) *localhost.Host {
	t.Helper()
	blobStore := testenv.Must(azure.NewBlobs(a.account))(t)
	log := testenv.Must(os.Create(filepath.Join(t.TempDir(), "handler.log")))(t)
	config := localhost.Config{ScriptRoot: a.dist, Queues: queueStore, Blobs: blobStore, Output: log,
		Env: append([]string{"AzureFunctionsWebHost__hostid=" + a.id, "AzureWebJobsStorage=" + a.account.ConnectionString(),
			"ROUNDHOUSE_LOCAL_KEY=" + a.key}, a.env...)}
	if a.auth {
		config.FunctionKey = a.key
	}
	host := testenv.Must(localhost.New(config))(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the end of the log of the handler below the local host:\n%s", text[max(0, len(text)-4000):])
		}
	})
	testenv.OK(t, host.WaitReady(testenv.Context(t)))
	return host
}

// TestSameAnswers sends both hosts the same requests in the same order, each with its own storage.
func TestSameAnswers(t *testing.T) {
	testenv.RealHost(t)
	key := newKey()
	both := func() app {
		a := app{dist: stage(t), account: storage(t), key: key, id: "compared", auth: true,
			env: []string{"ROUNDHOUSE_DIRECT=0"}} // otherwise runs progress between two requests, at the speed of the machine
		reschedule(t, a.dist, "*-timer", newYear)
		return a
	}
	realURL, localURL := startReal(t, both()).url, startLocal(t, both())
	all := exchanges(t, document, key)
	t.Logf("%d requests", len(all))
	seen := map[string]bool{}
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			onReal, err1 := send(strings.TrimPrefix(realURL, "http://"), e)
			onLocal, err2 := send(strings.TrimPrefix(localURL, "http://"), e)
			if err1 != nil || err2 != nil {
				t.Fatalf("%s\nreal host: %v\nlocal host: %v", shorten(e.line), err1, err2)
			}
			want, got := onReal.shown(key), onLocal.shown(key)
			t.Logf("real host: %s", shorten(want)) // to write a new request, run with -v
			if e.want != 0 && onReal.status != e.want {
				t.Errorf("%s\nstatus %d on the real host, want %d", shorten(e.line), onReal.status, e.want)
			}
			d, differ := differences[e.name]
			seen[e.name] = differ
			switch {
			case differ && want == got:
				t.Errorf("%s\nthe answers are equal, and may differ because %s: take it out of the table", shorten(e.line), d.why)
			case differ && (onReal.status != d.real || onLocal.status != d.local):
				t.Errorf("%s\nstatus %d on the real host and %d on the local one, want %d and %d", shorten(e.line), onReal.status, onLocal.status, d.real, d.local)
			case !differ && want != got:
				t.Errorf("%s\nreal host: %s\nlocal host: %s", shorten(e.line), shorten(want), shorten(got))
			}
		})
	}
	for name := range differences {
		if !seen[name] && !t.Failed() {
			t.Errorf("no request %q is in requests.http", name)
		}
	}
}

// shown returns an answer without the parts that differ between runs.
func (a answer) shown(key string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d by %s\n", a.status, a.framing)
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		switch name {
		case "Date", "Server", "Connection", "Content-Length":
		default:
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(a.header[http.CanonicalHeaderKey(name)], ", "))
		}
	}
	b.WriteString("\n" + string(a.body))
	return vary(strings.ReplaceAll(b.String(), key, "<key>"))
}

// vary removes the variable parts of a text.
func vary(text string) string {
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.to)
	}
	return text
}

// variable matches the parts that differ between any two runs.
var variable = []struct {
	pattern *regexp.Regexp
	to      string
}{
	{regexp.MustCompile(`127\.0\.0\.1:[0-9]+|localhost:[0-9]+`), "<host>"},
	{regexp.MustCompile(`0001-01-01T00:00:00`), "<never>"},
	{regexp.MustCompile(`9999-12-31T23:59:59`), "<end of time>"},
	{regexp.MustCompile(`(PopReceipt\W+)[^"\\]+`), "$1<receipt>"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:%A]+(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?`), "<time>"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]+(\.[0-9]+)?( \+0000 UTC)?`), "<time>"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`[0-9a-f]{32}`), "<id>"},
	{regexp.MustCompile(`("lastExecutedBy":)"[^"]*"`), `$1"<node>"`},
	{regexp.MustCompile(`(?m)^(X-Ms-Continuation-Token: ).*$`), "$1<token>"},
	{regexp.MustCompile(`("(durationMs|processUptime|uptimeSeconds|ageSeconds|elapsedMs|latencyMs)":)[0-9.e-]+`), "$1<count>"},
}

// shorten makes a long text readable, and keeps its length.
func shorten(text string) string {
	const most = 600
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", text[:most], len(text))
}
