package handler

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Config says what a Handler works with.
type Config struct {
	// Lookup finds the settings, as os.LookupEnv does it. Required.
	Lookup func(name string) (string, bool)
	// Tables, Queues and Blobs take the place of the storage account's, for tests; all of them, or none.
	Tables tables.Store
	Queues queues.Store
	Blobs  blobs.Store
	// Keys wraps the keys that payloads are encrypted with (ROUNDHOUSE_PAYLOAD_KEY), in place of the key vault. With other
	// stores, it is by default a key of the development secret store in Tables.
	Keys codec.Keys
	// Dial makes the connections of events and of engines' calls in the place of the network, for tests, beside other stores; nil means
	// the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Log takes the log, which gets no secrets; nil means no log.
	Log *slog.Logger
}

// Handler is an app without its server: what the Functions host calls. Main makes one, and so may tests and other hosts.
type Handler struct {
	program program
	router  http.Handler
	log     *slog.Logger
}

// New makes an app out of its settings. It does not go to the network.
func New(a App, c Config) (*Handler, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = redact.Logger(c.Log)
	r := settings.NewReader(c.Lookup)
	s, err := settings.Load(r)
	if err != nil {
		return nil, err
	}
	platform, prepare, err := openPlatform(r, s, c.Log)
	if err != nil {
		return nil, err
	}
	own := c.Tables != nil
	if own != (c.Queues != nil) || own != (c.Blobs != nil) {
		return nil, errors.New("tables, queues and blobs are given together, or none of them")
	}
	if own {
		platform.dial = c.Dial
		if platform, prepare, err = platform.over(c.Tables, c.Queues, c.Blobs, s.PayloadKey, c.Keys); err != nil {
			return nil, err
		}
	}
	built, err := a.assemble(s, platform, prepare)
	if err != nil {
		return nil, err
	}
	router, err := newRouter(built, s, c.Log)
	if err != nil {
		built.Close()
		return nil, err
	}
	return &Handler{built, router, c.Log}, nil
}

// Start creates what is missing in storage: tables, queues and containers. It can be repeated, and tries what has failed only.
func (h *Handler) Start(ctx context.Context) error {
	if err := h.program.begin(ctx); err != nil {
		return err
	}
	return h.program.Preparation.Try(ctx)
}

// SendSlot sends the messages of an occurrence of a schedule of an engine, for all of its items, and says how many. It is for
// tests: the timer of the app sends what is due.
func (h *Handler) SendSlot(ctx context.Context, engine, schedule string, slot time.Time) (sent int, err error) {
	return h.program.Slot(ctx, engine, schedule, slot)
}

// ServeHTTP answers what the Functions host sends: invocations of queue and timer functions at /{function}, and requests of
// HTTP functions at their own paths. What needs storage waits for Start to succeed, for a while, and is then refused.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.router.ServeHTTP(w, r) }

// Settled waits until the events are settled that this process delivers beside its invocations, because it has added them.
func (h *Handler) Settled(ctx context.Context) error {
	if h.program.Settled == nil {
		return nil
	}
	return h.program.Settled(ctx)
}

// Manifest describes the app.
func (h *Handler) Manifest() Manifest { return h.program.Manifest() }

// Stores are the stores as the app itself sees them: what is encrypted in them is in clear.
func (h *Handler) Stores() (tables.Store, queues.Store, blobs.Store) {
	p := h.program.Platform
	return p.Tables, p.Queues, p.Blobs
}

// Leave ends the work, as a signal to stop does: nothing begins any more, what runs is committed and put back, so that other
// processes go on with it at once, and they are told. The error says what could not be handed back within a few seconds. Close comes
// after it.
func (h *Handler) Leave(ctx context.Context) error { return h.program.handBack(ctx, h.log) }

// Close releases connections.
func (h *Handler) Close() { h.program.Close() }
