package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sources"
)

// Lag is a poller's lag behind its source: Place is its position, and End the current end of the source.
type Lag struct {
	Place, End poller.Cursor
	// CaughtUp means that no row is ready to be read. HeldBack is the reason why existing rows are held back, "" when none
	// are known.
	CaughtUp bool
	HeldBack string
	// Behind is the time between Place and End, if they are times.
	Behind time.Duration
	// Retained is the size of the log, in bytes, that the database keeps for the poller, 0 where it keeps none.
	Retained int64
	// PolledAt is when the poller last recorded an idle tick.
	PolledAt time.Time
}

// Lag queries the end of a poller's source. It uses its own connection; bound ctx. The errors are ErrNotDefined, those
// of Operator.Show, of DSN and of package sqlsource.
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

// instant returns the time of a position that is a time.
func instant(c poller.Cursor) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, c.Value)
	return t, err == nil
}

// source opens the source of a poller. It does not connect.
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
