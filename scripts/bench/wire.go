package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite"
)

const (
	// wireDelay is the minimum duration of each request on the counted wire, which distinguishes parallel requests
	// from sequential ones.
	wireDelay = 10 * time.Millisecond
	// wireQuiet is the time without a request after which a process counts as idle.
	wireQuiet = time.Second
)

// exchange is a request on the wire, from its arrival to its answer.
type exchange struct {
	began, ended time.Time
	what         string
}

// wire is an Azurite behind proxies that record every request: a process's requests are counted on the network.
type wire struct {
	server  *azurite.Server
	proxies []*http.Server
	account azure.Account

	mu   sync.Mutex
	seen []exchange
}

func newWire(ctx context.Context) (*wire, error) {
	startCtx, cancel := context.WithTimeout(ctx, azuriteStart)
	defer cancel()
	server, err := azurite.Start(startCtx, azurite.Config{})
	if err != nil {
		return nil, err
	}
	w := &wire{server: server}
	behind := server.Account()
	var ports []int
	for _, endpoint := range []string{behind.BlobEndpoint, behind.QueueEndpoint, behind.TableEndpoint} {
		port, err := w.proxy(endpoint)
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		ports = append(ports, port)
	}
	w.account = azure.EmulatorAccount(ports[0], ports[1], ports[2])
	return w, nil
}

// proxy replaces a service of the account.
func (w *wire) proxy(endpoint string) (port int, err error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return 0, fmt.Errorf("endpoint of the emulator: %w", err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("listen in the place of the emulator: %w", err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }}
	proxy := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		began := time.Now()
		time.Sleep(wireDelay)
		forward.ServeHTTP(rw, r)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, exchange{began, time.Now(), r.Method + " " + r.URL.Path})
	})}
	w.proxies = append(w.proxies, proxy)
	go func() { _ = proxy.Serve(listener) }() // ends with close
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// reset discards the recorded requests.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = nil
}

// count returns the number of requests since the last reset.
func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// rest waits until no request is sent any longer, and returns the requests.
func (w *wire) rest(ctx context.Context) ([]exchange, error) {
	for count := -1; ; {
		w.mu.Lock()
		seen := slices.Clone(w.seen)
		w.mu.Unlock()
		if len(seen) == count {
			return seen, nil
		}
		count = len(seen)
		select {
		case <-time.After(wireQuiet):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (w *wire) close() error {
	var errs []error
	for _, p := range w.proxies {
		errs = append(errs, p.Close())
	}
	return errors.Join(append(errs, w.server.Close())...)
}

// oneAfterAnother returns the longest chain of exchanges, each of which began after the previous one had ended.
func oneAfterAnother(all []exchange) int {
	chain, free := 0, time.Time{}
	for _, x := range slices.SortedFunc(slices.Values(all), func(a, b exchange) int { return a.ended.Compare(b.ended) }) {
		if !x.began.Before(free) {
			chain, free = chain+1, x.ended
		}
	}
	return chain
}

// program is the deployed handler, compiled once.
type program struct{ folder, path string }

func buildHandler(ctx context.Context) (program, error) {
	folder, err := os.MkdirTemp("", "bench-handler")
	if err != nil {
		return program{}, fmt.Errorf("a place for the handler: %w", err)
	}
	p := program{folder, filepath.Join(folder, "handler")}
	build := exec.CommandContext(ctx, "go", "build", "-o", p.path, "./cmd/handler")
	if out, err := build.CombinedOutput(); err != nil {
		return p, errors.Join(fmt.Errorf("build ./cmd/handler, from the folder of the module: %w: %s", err, out), p.remove())
	}
	return p, nil
}

func (p program) remove() error { return os.RemoveAll(p.folder) }

// deployed is a running handler, over a counted wire.
type deployed struct {
	cmd     *exec.Cmd
	address string
}

// start starts a handler in the publisher's profile, and returns when its log reports that storage is prepared.
func (p program) start(ctx context.Context, w *wire) (*deployed, error) {
	cmd := exec.CommandContext(ctx, p.path)
	cmd.Env = append(os.Environ(), "FUNCTIONS_CUSTOMHANDLER_PORT=0", "FUNCTIONS_APP_ROOT_PATH=.", "AZURE_FUNCTIONS_ENVIRONMENT=Development",
		"ROUNDHOUSE_CONTEXT=publisher", "ROUNDHOUSE_OUTBOX_POLL_INTERVAL_SECONDS=1", "AzureWebJobsStorage="+w.account.ConnectionString())
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the handler: %w", err)
	}
	c := &deployed{cmd: cmd}
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var record struct{ Msg, Address string }
		_ = json.Unmarshal(lines.Bytes(), &record) // other lines are not JSON
		switch record.Msg {
		case "listening":
			c.address = record.Address
		case "storage is prepared":
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return c, nil
		}
		text.Write(lines.Bytes())
	}
	return nil, errors.Join(fmt.Errorf("the handler ended before storage was prepared: %.2000s", &text), cmd.Wait())
}

// stop stops a handler with a signal.
func (c *deployed) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	_ = c.cmd.Wait() // the error reports that it was stopped
}

// kill kills a handler as the host does.
func (c *deployed) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // the error reports that it was killed
}
