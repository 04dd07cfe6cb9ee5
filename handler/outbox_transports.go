package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/outbox"
)

// transports are the destinations of the settings.
type transports struct {
	destinations outbox.Destinations
	queues       []*outbox.Queue
	closers      []func() error
}

// openTransports makes the destinations. It sends no request.
func openTransports(s settings.Outbox, with Platform, log *slog.Logger) (transports, error) {
	t := transports{destinations: outbox.Destinations{}}
	var errs []error
	for name, d := range s.Destinations {
		if err := t.open(name, d, with, log); err != nil {
			errs = append(errs, fmt.Errorf("destination %s: %w", name, err))
		}
	}
	return t, errors.Join(errs...)
}

func (t *transports) open(name string, d settings.Destination, with Platform, log *slog.Logger) error {
	switch {
	case d.HTTP != nil:
		to, err := outbox.NewHTTP(httpConfig(name, *d.HTTP, with))
		if err != nil {
			return err
		}
		t.destinations[name], t.closers = to, append(t.closers, to.Close)
	case d.Instance != nil:
		to := newInstances(name, *d.Instance, with)
		t.destinations[name], t.closers = to, append(t.closers, to.Close)
	case d.Queue != nil:
		to, err := outbox.NewQueue(d.Queue.Config(with.Queues, with.Blobs))
		if err != nil {
			return err
		}
		t.destinations[name], t.queues = to, append(t.queues, to)
	default:
		t.destinations[name] = outbox.NewLog(log)
	}
	return nil
}

// httpConfig adds the sender's authentication to the settings of a destination.
func httpConfig(name string, d settings.HTTPDestination, with Platform) outbox.HTTPConfig {
	clients := with.Outbound
	c := d.Config(clients.Keys(d.Auth))
	c.Dial = with.dial
	name = "ROUNDHOUSE_OUTBOX destinations." + name
	if d.Audience == "" && d.ClientCertificate == "" {
		clients.Announce(name, d.URL, d.Auth)
		c.Identify = func(connections *http.Transport) (http.RoundTripper, error) { return noting{connections}, nil }
		return c
	}
	c.Identify = func(connections *http.Transport) (http.RoundTripper, error) {
		identified, err := clients.Identified(name, d.URL, d.Auth, connections)
		return noting{identified}, err
	}
	return c
}

// prepare makes the queues and the container of the destinations.
func (t transports) prepare(ctx context.Context) error {
	var errs []error
	for _, q := range t.queues {
		errs = append(errs, q.Prepare(ctx))
	}
	return errors.Join(errs...)
}

// close closes idle connections. They end with the process, too, so errors are ignored.
func (t transports) close() {
	for _, end := range t.closers {
		_ = end()
	}
}
