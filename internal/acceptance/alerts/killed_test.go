package alerts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// appEnv makes a process of this test binary the app.
const appEnv = "ROUNDHOUSE_TEST_ALERTS_APP"

func TestMain(m *testing.M) {
	if os.Getenv(appEnv) != "" {
		fmt.Fprintln(os.Stderr, serveApp())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// serveApp runs the app until it is killed. Its first line on standard output is its address.
func serveApp() error {
	env := settingstest.Emulator("../../..").With("ROUNDHOUSE_OUTBOX", outboxSetting, "AZURE_FUNCTIONS_ENVIRONMENT", "Development", "FUNCTIONS_CORETOOLS_ENVIRONMENT", "true")
	h, err := handler.New(handler.App{Engines: (&app{}).engines}, handler.Config{Lookup: env.Lookup, Tables: tables.NewMemory(), Queues: queues.NewMemory(), Blobs: blobs.NewMemory()})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err := errors.Join(err, h.Start(context.Background())); err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, h)
}

// process starts the app as a process, and returns its address.
func process(t *testing.T) (cmd *exec.Cmd, address string) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), appEnv+"=1"), os.Stderr
	out, err := cmd.StdoutPipe()
	testenv.OK(t, errors.Join(err, cmd.Start()))
	address = testenv.Must(bufio.NewReader(out).ReadString('\n'))(t)
	return cmd, strings.TrimSpace(address)
}

// kill ends a process with SIGKILL.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

// scraped returns the metrics of a process; nil when it does not answer.
func scraped(t *testing.T, address string) []byte {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "localhost"
	res, err := client.Do(req)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", res.StatusCode, page, err)
	}
	return page
}

// killed kills a process and starts another one. Each of its pages is used for all scrapes of a phase.
func killed(t *testing.T, r *recording) {
	first, address := process(t)
	hold := func() {
		page, since := scraped(t, address), 0
		if n := len(r.ends); n > 0 {
			since = r.ends[n-1]
		}
		for minute := range 20 {
			r.scrapeAt(since+1+minute, "a", page)
		}
		r.ends = append(r.ends, since+20)
	}
	hold()
	kill(t, first)
	hold()
	second, next := process(t)
	defer kill(t, second)
	address = next
	hold()
}
