package quota

import (
	"sync"
	"time"
)

const (
	// maxKept is the maximum number of callers in memory.
	maxKept = 10_000
	// looks is the number of callers that are checked to make room for another.
	looks = 64
)

// level is the remaining allowance of a caller. A full one is the same as a new one.
type level interface {
	left(now time.Time) (left float64, full bool)
}

// kept holds one value for each of a limited number of callers. It is safe for concurrent use.
type kept[V level] struct {
	make func(Caller) V

	mu     sync.Mutex
	values map[Caller]V
}

func keep[V level](make func(Caller) V) kept[V] { return kept[V]{make: make, values: map[Caller]V{}} }

// of returns the value of a caller.
func (k *kept[V]) of(c Caller) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.values[c]
	if !ok {
		if len(k.values) >= maxKept {
			k.evict()
		}
		v = k.make(c)
		k.values[c] = v
	}
	return v
}

// evict removes the full values of a sample, or else the fullest one.
func (k *kept[V]) evict() {
	now, seen, room := time.Now(), 0, false
	var fullest Caller
	most := 0.0
	for c, v := range k.values {
		left, full := v.left(now)
		if full {
			delete(k.values, c)
			room = true
		}
		if seen == 0 || left > most {
			fullest, most = c, left
		}
		if seen++; seen == looks {
			break
		}
	}
	if !room {
		delete(k.values, fullest)
	}
}
