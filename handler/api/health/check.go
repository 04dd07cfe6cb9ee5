package health

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/api/fresh"
	"github.com/vibedata/roundhouse/handler/preparation"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/tables"
)

// check is one check: run returns measurements by name, or an error, for which name is used.
type check struct {
	name, componentType string
	run                 func(ctx context.Context) (map[string]Measurement, error)
}

// shared runs checks in parallel, and not again before their results are MaxAge old.
func (h *Checks) shared(checks ...check) *fresh.Value[map[string]Measurement] {
	return &fresh.Value[map[string]Measurement]{
		// Each check has its own timeout; this one affects none of them.
		Timeout: 2 * h.config.Timeout, MaxAge: h.config.MaxAge, Now: h.config.Now,
		Load: func(ctx context.Context) (map[string]Measurement, error) {
			found := make([]map[string]Measurement, len(checks))
			var all sync.WaitGroup
			for i, c := range checks {
				all.Go(func() { found[i] = h.run(ctx, c) })
			}
			all.Wait()
			together := map[string]Measurement{}
			for _, f := range found {
				maps.Copy(together, f)
			}
			return together, nil
		},
	}
}

// run runs one check to its end, or to its timeout.
func (h *Checks) run(ctx context.Context, c check) map[string]Measurement {
	ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
	defer cancel()
	found, err := h.guarded(ctx, c)
	at := h.config.Now().UTC()
	if err != nil {
		h.config.Log.WarnContext(ctx, "health check failed", "check", c.name, "error", engine.Redact(err.Error()))
		return map[string]Measurement{c.name: {ComponentType: c.componentType, Status: Fail, Time: at, Output: trouble(err)}}
	}
	for name, m := range found {
		m.Time = at
		found[name] = m
	}
	return found
}

// guarded converts a panic to an error: no other code recovers in this goroutine.
func (h *Checks) guarded(ctx context.Context, c check) (found map[string]Measurement, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.run(ctx)
}

// trouble returns the kind of an error, without storage's own text.
func trouble(err error) string {
	switch {
	case errors.Is(err, outage.ErrUnavailable):
		return "No answer; the log has the reason."
	case errors.Is(err, context.DeadlineExceeded):
		return "No answer in time."
	case errors.Is(err, context.Canceled):
		return "The request ended before the check did."
	case errors.Is(err, tables.ErrDenied):
		return "The credential is refused."
	case errors.Is(err, tables.ErrThrottled):
		return "Too busy."
	case errors.Is(err, tables.ErrOutcomeUnknown):
		return "No answer; the log has the reason."
	case errors.Is(err, tables.ErrNotFound):
		return "Not created yet."
	case errors.Is(err, preparation.ErrUntried):
		return "The app has only just started."
	default:
		return "No usable answer; the log has the reason."
	}
}

// readTables reads a row that may be missing: any answer of the service counts, with its date.
func (h *Checks) readTables(ctx context.Context) (map[string]Measurement, error) {
	var ahead time.Duration
	var known bool
	found, err := h.timed("tables:responseTime", func() (err error) {
		ahead, known, err = ask(ctx, h.config.Tables, h.config.Table, h.config.Now)
		return err
	})
	if err == nil && known {
		found[clockCheck] = h.skew(ahead)
	}
	return found, err
}

// readBlobs reads a missing blob.
func (h *Checks) readBlobs(ctx context.Context) (map[string]Measurement, error) {
	return h.timed(blobsCheck, func() error {
		_, err := h.config.Blobs.Get(ctx, h.config.Container, "health")
		if errors.Is(err, blobs.ErrNotFound) {
			return nil
		}
		return err
	})
}

// askVault calls the vault.
func (h *Checks) askVault(ctx context.Context) (map[string]Measurement, error) {
	return h.timed(vaultCheck, func() error { return h.config.Vault(ctx) })
}

func (h *Checks) readQueues(ctx context.Context) (map[string]Measurement, error) {
	return h.timed("queues:responseTime", func() error {
		_, err := h.config.Queues.Length(ctx, h.config.Queue)
		return err
	})
}

// timed measures the duration of a storage request.
func (h *Checks) timed(name string, ask func() error) (map[string]Measurement, error) {
	began := h.config.Now()
	if err := ask(); err != nil {
		return nil, err
	}
	took := h.config.Now().Sub(began)
	return map[string]Measurement{name: {
		ComponentType: "datastore", ObservedValue: float64(took) / float64(time.Millisecond), ObservedUnit: "ms", Status: Pass,
	}}, nil
}

func (h *Checks) measureOutbox(ctx context.Context) (map[string]Measurement, error) {
	s, err := h.config.Outbox(ctx)
	if err != nil {
		return nil, err
	}
	return h.config.Thresholds.outbox(s), nil
}
