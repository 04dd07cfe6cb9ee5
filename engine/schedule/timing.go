package schedule

import (
	"hash/fnv"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/ncrontab"
)

// Off, instead of an expression, is never due.
const Off = "off"

// timing defines when a target is due: at the occurrences of an expression, each shifted by the target's own delay.
type timing struct {
	cron   string
	spread time.Duration
	// expression is nil for Off.
	expression *ncrontab.Expression
	// shift is the target's delay within the spread.
	shift time.Duration
}

// newTiming parses an expression for the target with a key.
func newTiming(cron string, spread time.Duration, key string) (timing, error) {
	t := timing{cron: cron, spread: spread, shift: shiftOf(key, spread)}
	if cron == Off {
		return t, nil
	}
	if err := engine.CheckCron(cron); err != nil {
		return timing{}, err
	}
	parsed, err := ncrontab.Parse(cron)
	t.expression = &parsed
	return t, err
}

// shiftOf returns the delay of a key within a spread, in whole seconds. It is the same in all processes and versions.
func shiftOf(key string, spread time.Duration) time.Duration {
	seconds := uint64(spread / time.Second)
	if seconds == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // it cannot fail
	return time.Duration(h.Sum64()%seconds) * time.Second
}

// same reports whether two timings are equal.
func (t timing) same(other timing) bool { return t.cron == other.cron && t.spread == other.spread }

// latest returns the last due slot after the last sent one, and due after a time.
func (t timing) latest(sent, after, now time.Time) (slot time.Time, ok bool) {
	if t.expression == nil {
		return time.Time{}, false
	}
	slot = t.expression.Prev(now.Add(-t.shift + 1))
	return slot, !slot.IsZero() && slot.After(sent) && slot.Add(t.shift).After(after)
}

// next returns the first slot after the last sent one, and due after a time; ok is false for none.
func (t timing) next(sent, after time.Time) (slot, due time.Time, ok bool) {
	if t.expression == nil {
		return time.Time{}, time.Time{}, false
	}
	from := after.Add(-t.shift)
	if sent.After(from) {
		from = sent
	}
	slot = t.expression.Next(from)
	return slot, slot.Add(t.shift), !slot.IsZero()
}
