package schedule

import (
	"hash/fnv"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/ncrontab"
)

// Off, in the place of an expression, is never due.
const Off = "off"

// timing is when an item is due: at the occurrences of an expression, each shifted by what is the item's own.
type timing struct {
	cron   string
	spread time.Duration
	// expression is nil for Off.
	expression *ncrontab.Expression
	// shift is the item's place within the spread.
	shift time.Duration
}

// newTiming reads an expression for the item with a key.
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

// shiftOf is the place of a key within a spread, in whole seconds. It is the same in all processes and versions.
func shiftOf(key string, spread time.Duration) time.Duration {
	seconds := uint64(spread / time.Second)
	if seconds == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // it cannot fail
	return time.Duration(h.Sum64()%seconds) * time.Second
}

// same says whether two timings mean the same.
func (t timing) same(other timing) bool { return t.cron == other.cron && t.spread == other.spread }

// latest is the last slot that is due by now and was not before: later than the last one that was sent, and due after a time.
func (t timing) latest(sent, after, now time.Time) (slot time.Time, ok bool) {
	if t.expression == nil {
		return time.Time{}, false
	}
	slot = t.expression.Prev(now.Add(-t.shift + 1))
	return slot, !slot.IsZero() && slot.After(sent) && slot.Add(t.shift).After(after)
}

// next is the first slot that is later than the last one that was sent, and due after a time; ok is false when there is none.
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
