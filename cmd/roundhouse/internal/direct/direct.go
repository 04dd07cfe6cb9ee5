// Package direct runs the API's own code over storage, in this process: its views and changes of the history, the
// dead letters and the registry work when the program is down, with the same JSON, checks and errors. It owns no
// storage keys; it uses those of the packages engine and engine/registry.
package direct

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/handler/deadevent"
	"github.com/vibedata/roundhouse/internal/urlpath"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Address is the address of requests to a Transport; nothing listens there.
const Address = "http://localhost"

// Config configures a Transport; all of it is required.
type Config struct {
	Tables tables.Store
	// Queues and Blobs are those of the app: a decision about the dead letter of an event changes the event.
	Queues queues.Store
	Blobs  blobs.Store
	// Account is the name of the storage account.
	Account string
	// Engines are the names with possible history and dead letters.
	Engines []string
	// By is the caller: decisions are recorded under this name.
	By  string
	Log *slog.Logger
	Now func() time.Time
}

// Transport answers the requests of a client.
type Transport struct {
	echo     *echo.Echo
	audit    *audit.Log
	registry *registry.Registry
}

var _ http.RoundTripper = (*Transport)(nil)

// New makes a transport. It sends no request yet.
func New(c Config) (*Transport, error) {
	who := access.LocalUser(c.By)
	instances := registry.New(c.Tables, "")
	instances.Now = c.Now
	placement := engine.AppliedPlacement(engine.PlacementConfig{Tables: c.Tables, Registry: instances, Account: c.Account})
	store := codec.Opaque(placement, covers())
	t := &Transport{echo: echo.New(), audit: &audit.Log{Tables: store, Now: c.Now}, registry: instances}
	letters := engine.NewDeadLetters(store, "")
	events, err := outbox.New(outbox.Config{Tables: store, Queues: c.Queues, Blobs: c.Blobs, Letters: deadevent.NewLetters(letters), Logger: c.Log, Now: c.Now})
	if err != nil {
		return nil, err
	}
	deadevent.NewOwner(letters, outbox.NewAdmin(events))
	return t, api.Register(t.echo, api.Config{
		History: engine.NewHistory(store, ""), DeadLetters: letters, Engines: c.Engines, Registry: instances, Placement: placement,
		Nodes: func(ctx context.Context) ([]nodes.Info, error) { return listNodes(ctx, store) },
		Door:  access.Door{Control: access.Control{Fixed: &who}, Audit: t.audit, Name: "cli", Log: c.Log}, Now: c.Now, Log: c.Log,
	})
}

// listNodes lists the processes of the app; none, if it has never run.
func listNodes(ctx context.Context, store tables.Store) ([]nodes.Info, error) {
	all, err := nodes.List(ctx, store, "")
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil
	}
	return all, err
}

// RoundTrip answers a request. It fails only when its context has ended.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead { // the app that creates it may never have run
		if err := errors.Join(t.audit.CreateTable(r.Context()), t.registry.CreateTable(r.Context())); err != nil {
			return nil, err
		}
	}
	answer := &recorder{header: http.Header{}}
	urlpath.Restore(r.URL)
	t.echo.ServeHTTP(answer, r)
	if err := errors.Join(r.Body.Close(), r.Context().Err()); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: max(answer.status, http.StatusOK), Header: answer.header, Body: io.NopCloser(&answer.body),
		ContentLength: int64(answer.body.Len()), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
	}, nil
}

// recorder records an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header of the answer.
func (r *recorder) Header() http.Header { return r.header }

// Write adds to the body.
func (r *recorder) Write(text []byte) (int, error) { return r.body.Write(text) }

// WriteHeader sets the status.
func (r *recorder) WriteHeader(status int) { r.status = status }
