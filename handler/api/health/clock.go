package health

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const clockCheck = "clock:skew"

// ask requests a row that may be missing from the table store, and returns by how much its clock is ahead of the
// local one, from the date of its answer. That date is in whole seconds and from some moment between request and
// answer, so a second and the duration of the request count as no difference. known is false for an answer without a
// date.
func ask(ctx context.Context, store tables.Store, table string, now func() time.Time) (ahead time.Duration, known bool, err error) {
	var answer tables.Response
	asked := now()
	if _, err = store.Query(tables.WithCaptureResponse(ctx, &answer), table, tables.Query{Partition: "health", Limit: 1}); err != nil {
		return 0, false, err
	}
	answered, date := now(), answer.Date()
	switch {
	case date.IsZero():
		return 0, false, nil
	case date.After(answered):
		return date.Sub(answered), true, nil
	case date.Add(time.Second).Before(asked):
		return date.Add(time.Second).Sub(asked), true, nil
	default:
		return 0, true, nil
	}
}

// ClockSkew returns by how much the clock of a table store is ahead of that of this process; negative when it is
// behind, 0 when both agree within a second, or the store returns no date. nil for now means time.Now.
func ClockSkew(ctx context.Context, store tables.Store, table string, now func() time.Time) (time.Duration, error) {
	if now == nil {
		now = time.Now
	}
	ahead, _, err := ask(ctx, store, table, now)
	if err != nil {
		return 0, fmt.Errorf("compare the clocks: %w", err)
	}
	return ahead, nil
}

// skew compares a difference of clocks with its limit.
func (h *Checks) skew(ahead time.Duration) Measurement {
	m := Measurement{ComponentType: "system", ObservedValue: ahead.Seconds(), ObservedUnit: "s"}
	if m.Status, m.Output = h.config.Thresholds.ClockSkew.judge(ahead.Abs()); m.Status != Pass {
		m.Output = "The clock of this machine differs from that of storage, so that leases, schedules and due times are off by as much: set it, or see why its time service does not. " + m.Output
	}
	return m
}
