package main

import (
	"context"
	"errors"
	"time"
)

// starts counts the handler's storage requests at a start with existing storage: the deployed program in the
// publisher's profile, on the wire. Its first start, which creates everything, is not counted.
func starts() scenario {
	metrics := []metric{
		{"start/requests", "requests", ""},
		{"start/sequence", "requests", "goal 2 or less: how many of them wait for one another"},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) (values []float64, err error) {
		err = overWire(ctx, func(w *wire, p program) error {
			first, err := p.start(ctx, w)
			if err != nil {
				return err
			}
			first.stop() // it hands back its work: the next one has nothing to take over
			if _, err = w.rest(ctx); err != nil {
				return err
			}
			w.reset()
			second, err := p.start(ctx, w)
			if err != nil {
				return err
			}
			defer second.kill()
			seen, err := w.rest(ctx)
			values = []float64{float64(len(seen)), float64(oneAfterAnother(seen))}
			return err
		})
		return values, err
	}}
}

// overWire builds the handler and runs do with a counted wire.
func overWire(ctx context.Context, do func(w *wire, p program) error) (err error) {
	p, err := buildHandler(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	w, err := newWire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return do(w, p)
}
