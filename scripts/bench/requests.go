package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// requestLatency is the duration of each storage request while requests are counted, so that work overlaps as
	// over a network.
	requestLatency = 2 * time.Millisecond
	// loaded is the number of messages of a load, and hostBatch the number that the host handles at a time, as in
	// host.json.
	loaded    = 512
	hostBatch = 16
)

// requests lists the counts over the whole app: the deployed handler, with the host's own requests.
func requests() []scenario {
	all := []scenario{loneRequests()}
	for _, m := range engineLoads() {
		all = append(all, m.scenario())
	}
	for _, c := range apiCalls() {
		all = append(all, c.scenario())
	}
	return all
}

// requestCount counts storage requests by service, table or queue, and kind.
type requestCount struct {
	mu     sync.Mutex
	counts map[string]int
}

// intercept counts a request, with its latency.
func (c *requestCount) intercept(ctx context.Context, call faults.Call, next func(context.Context) error) error {
	c.note(call)
	time.Sleep(requestLatency)
	return next(ctx)
}

func (c *requestCount) note(call faults.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[call.Service+"/"+call.Target+"/"+call.Operation]++
}

// begin resets the counts.
func (c *requestCount) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = map[string]int{}
}

// sum adds up the counts with one of the prefixes.
func (c *requestCount) sum(prefixes ...string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, count := range c.counts {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			n += count
		}
	}
	return n
}

// countedApp is the app in one process over storage in memory, and its host.
type countedApp struct {
	*requestCount
	*neighbors
	handler *handler.Handler
	queues  queues.Store
	polled  *queues.Memory    // the same, uncounted
	listens map[string]string // functions by queue
	done    atomic.Int64      // messages that were handled
}

// newCountedApp starts the app.
func newCountedApp(ctx context.Context) (*countedApp, error) {
	memory := tables.NewMemory()
	around, err := newNeighbors(memory)
	if err != nil {
		return nil, err
	}
	d := &countedApp{requestCount: &requestCount{counts: map[string]int{}}, neighbors: around, polled: queues.NewMemory(), listens: map[string]string{}}
	c := handler.Config{Tables: faults.Tables(memory, d.intercept), Queues: faults.Queues(d.polled, d.intercept),
		Blobs: faults.Blobs(blobs.NewMemory(), d.intercept), Lookup: countedSettings, Log: slog.New(slog.DiscardHandler)}
	d.queues = c.Queues
	if d.handler, err = handler.New(handler.App{Engines: around.engines}, c); err != nil {
		return nil, err
	}
	for name, f := range d.handler.Manifest().Functions {
		if queue := f.Bindings[0].QueueName; queue != "" {
			d.listens[queue] = name
		}
	}
	return d, d.handler.Start(ctx)
}

// countedSettings finds the settings of a developer's host.
func countedSettings(name string) (string, bool) {
	value, ok := map[string]string{"AZURE_FUNCTIONS_ENVIRONMENT": "Development", "FUNCTIONS_CORETOOLS_ENVIRONMENT": "true",
		"AzureWebJobsStorage": "UseDevelopmentStorage=true", "FUNCTIONS_CUSTOMHANDLER_PORT": "0",
		"AzureFunctionsJobHost__extensions__queues__maxDequeueCount": "8"}[name]
	return value, ok
}

// host delivers due messages until none is left and n messages were handled. Of each queue it receives the next batch
// when half of the previous one is done, as in host.json.
func (d *countedApp) host(ctx context.Context, n int64) error {
	d.done.Store(0)
	var group errgroup.Group
	inFlight := map[string]*atomic.Int64{}
	for queue := range d.listens {
		inFlight[queue] = &atomic.Int64{}
	}
	for {
		busy := false
		for queue, name := range d.listens {
			now := inFlight[queue].Load()
			busy = busy || now > 0
			if now > hostBatch/2 {
				continue
			}
			messages, err := d.polled.Receive(ctx, queue, hostBatch, time.Minute)
			if errors.Is(err, queues.ErrNotFound) || err == nil && len(messages) == 0 {
				continue // polls of an empty queue count for no message
			}
			if err != nil {
				return errors.Join(err, group.Wait())
			}
			d.note(faults.Call{Service: "queues", Target: queue, Operation: "Receive"})
			for _, m := range messages {
				busy = true
				inFlight[queue].Add(1)
				group.Go(func() error {
					defer inFlight[queue].Add(-1)
					return d.invoke(ctx, queue, name, m)
				})
			}
		}
		if busy {
			continue
		}
		if err := errors.Join(group.Wait(), d.handler.Settled(ctx)); err != nil || d.done.Load() >= n {
			return err
		}
	}
}

// invoke delivers a message to its function, as the host does, and deletes it.
func (d *countedApp) invoke(ctx context.Context, queue, name string, m queues.Message) error {
	body, err := json.Marshal(map[string]any{"Data": map[string]any{function.QueueParameter: base64.StdEncoding.EncodeToString([]byte(m.Text))},
		"Metadata": map[string]any{"Id": m.ID, "DequeueCount": m.DequeueCount, "InsertionTime": m.InsertedAt}})
	if err != nil {
		return err
	}
	if err := d.do(ctx, "/"+name, body, http.StatusOK); err != nil {
		return err
	}
	d.done.Add(1)
	return d.queues.Delete(ctx, queue, m.ID, m.PopReceipt)
}

// do posts to the app.
func (d *countedApp) do(ctx context.Context, path string, body []byte, want int) error {
	code, answer := d.call(ctx, http.MethodPost, path, body)
	if code != want {
		return fmt.Errorf("%s answers %d: %.256s", path, code, answer)
	}
	return nil
}

// call sends a request to the app.
func (d *countedApp) call(ctx context.Context, method, path string, body []byte) (code int, answer []byte) {
	req := httptest.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	d.handler.ServeHTTP(rec, req)
	return rec.Code, rec.Body.Bytes()
}
