package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sources"
)

// Lag is how far a poller is behind its source: Place is where it is, and End where the source ends now.
type Lag struct {
	Place, End poller.Cursor
	// CaughtUp says that there is no row that it could take now. HeldBack says why there are rows that it may not take yet, "" when none
	// are known.
	CaughtUp bool
	HeldBack string
	// Behind is the time between place and end, where places are times.
	Behind time.Duration
	// Retained is how many bytes of log the database keeps until the poller has got on, 0 where it keeps none for it.
	Retained int64
	// PolledAt is when it last wrote down that there was nothing to do.
	PolledAt time.Time
}

// Lag asks the source of a poller for its end. It takes a connection of its own; bound ctx. The errors are ErrNotDefined, those of
// Operator.Show, of DSN and of package sqlsource.
func (a Admin) Lag(ctx context.Context, name string) (lag Lag, err error) {
	o, err := a.operator(ctx, name)
	if err != nil {
		return lag, err
	}
	v, err := o.Show(ctx, name)
	if err != nil {
		return lag, err
	}
	source, err := a.source(ctx, name)
	if err != nil {
		return lag, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := v.Document.CheckDatabase(ctx, source); err != nil {
		return lag, fmt.Errorf("poller %s: %w", name, err)
	}
	end, err := source.End(ctx)
	if err != nil {
		return lag, err
	}
	place := v.Document.Cursor()
	next, err := source.Fetch(ctx, place, 1, 1)
	if err != nil {
		return lag, err
	}
	lag = Lag{Place: place, End: end, CaughtUp: len(next.Rows) == 0, HeldBack: next.HeldBack, Retained: next.Retained, PolledAt: v.Document.PolledAt}
	from, okFrom := instant(place)
	to, okTo := instant(end)
	if okFrom && okTo && to.After(from) {
		lag.Behind = to.Sub(from)
	}
	return lag, nil
}

// instant is the time that a place is, where places are times.
func instant(c poller.Cursor) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, c.Value)
	return t, err == nil
}

// source opens what a poller reads. It does not connect.
func (a Admin) source(ctx context.Context, name string) (poller.Source, error) {
	setting, ok := a.Setting(name)
	if !ok {
		return nil, fmt.Errorf("poller %s: %w", name, ErrNotDefined)
	}
	c, err := sources.Decode(setting.Source)
	if err != nil {
		return nil, fmt.Errorf("poller %s: %w: %w", name, poller.ErrInvalid, err)
	}
	dsn, err := a.DSN(ctx, setting)
	if err != nil {
		return nil, fmt.Errorf("poller %s: %w", name, err)
	}
	source, err := c.Open(dsn)
	if err != nil {
		return nil, fmt.Errorf("poller %s: %w", name, err)
	}
	return source, nil
}
