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

// Config configures a Handler.
type Config struct {
	// Lookup finds the settings, as os.LookupEnv does it. Required.
	Lookup func(name string) (string, bool)
	// Tables, Queues and Blobs replace the storage account's, for tests; all of them, or none.
	Tables tables.Store
	Queues queues.Store
	Blobs  blobs.Store
	// Keys wraps the keys that payloads are encrypted with (ROUNDHOUSE_PAYLOAD_KEY), instead of the key vault. With
	// replaced stores, it is by default a key of the development secret store in Tables.
	Keys codec.Keys
	// Dial makes the connections of events and of engines' calls instead of the network, for tests with replaced
	// stores; nil means the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Log receives the log, which contains no secrets; nil means no log.
	Log *slog.Logger
}

// Handler is an app without its server: the Functions host calls it. Main makes one, and so may tests and other
// hosts.
type Handler struct {
	program program
	router  http.Handler
	log     *slog.Logger
}

// New makes an app from its settings. It does not use the network.
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

// Start creates missing tables, queues and containers. It can be repeated, and retries only the failed ones.
func (h *Handler) Start(ctx context.Context) error {
	if err := h.program.begin(ctx); err != nil {
		return err
	}
	return h.program.Preparation.Try(ctx)
}

// SendSlot sends the messages of an occurrence of an engine's schedule, for all of its targets, and returns how many.
// It is for tests: the timer of the app sends due slots.
func (h *Handler) SendSlot(ctx context.Context, engine, schedule string, slot time.Time) (sent int, err error) {
	return h.program.Slot(ctx, engine, schedule, slot)
}

// ServeHTTP answers the requests of the Functions host: invocations of queue and timer functions at /{function}, and
// requests of HTTP functions at their own paths. A request that needs storage waits for Start to succeed, up to a
// limit, and is then refused.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.router.ServeHTTP(w, r) }

// Settled waits until the events are settled that this process delivers in parallel to its invocations.
func (h *Handler) Settled(ctx context.Context) error {
	if h.program.Settled == nil {
		return nil
	}
	return h.program.Settled(ctx)
}

// Manifest describes the app.
func (h *Handler) Manifest() Manifest { return h.program.Manifest() }

// Stores returns the stores as the app uses them: encrypted data in clear.
func (h *Handler) Stores() (tables.Store, queues.Store, blobs.Store) {
	p := h.program.Platform
	return p.Tables, p.Queues, p.Blobs
}

// Leave ends the work, like a signal to stop: nothing new begins, running work is committed and requeued, so that
// other processes continue it immediately, and they are notified. The error names the work that could not be handed
// back within a few seconds. Call Close after it.
func (h *Handler) Leave(ctx context.Context) error { return h.program.handBack(ctx, h.log) }

// Close releases connections.
func (h *Handler) Close() { h.program.Close() }
