package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// job is the input of the activities of random programs.
type job struct {
	Key   string `json:"key"`
	Mode  string `json:"mode,omitempty"`
	Times int    `json:"times,omitempty"`
	ID    string `json:"id,omitempty"` // of the orchestration that makes a request
}

// deeds records the effects of random programs on the world. It identifies calls by their idempotency keys, so it can
// distinguish a call that ran twice from two calls.
type deeds struct {
	mu        sync.Mutex
	calls     map[string][]string        // key -> idempotency keys of its calls, in the order in which they began
	places    map[string][]string        // key -> executions that called it, in the order in which they did
	runs      int                        // of activities
	published map[string]map[string]bool // payload -> keys of its publications
	installed map[string]bool            // key -> it is installed
	undone    []string                   // keys, in the order in which they were undone
	drawn     int
	asked     func(job) // is called for every orchestration that makes a request
}

func newDeeds() *deeds {
	return &deeds{calls: map[string][]string{}, places: map[string][]string{}, published: map[string]map[string]bool{},
		installed: map[string]bool{}, asked: func(job) {}}
}

// begin records that an attempt of a call begins. It returns whether the call is new, and how many executions have
// called the same.
func (d *deeds) begin(ctx context.Context, key string) (anew bool, executions int) {
	info := Info(ctx)
	d.runs++
	if k := info.IdempotencyKey(); !slices.Contains(d.calls[key], k) {
		d.calls[key], anew = append(d.calls[key], k), true
	}
	where := fmt.Sprint(info.Orchestration, " ", info.Execution)
	i := slices.Index(d.places[key], where)
	if i < 0 {
		i, d.places[key] = len(d.places[key]), append(d.places[key], where)
	}
	return anew, i + 1
}

// work is an activity that behaves as its mode says. It may be half done when it fails.
func (d *deeds) work(ctx context.Context, j job) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	anew, executions := d.begin(ctx, j.Key)
	if anew {
		d.installed[j.Key] = true // a call that runs again, because its result was lost, changes nothing
	}
	attempt := Info(ctx).Attempt
	switch {
	case j.Mode == modeDoomed:
		return "", Permanent(fault(j.Key))
	case j.Mode == modeTired, j.Mode == modeFlaky && attempt <= j.Times, j.Mode == modeUntil && executions <= j.Times:
		return "", fault(j.Key)
	}
	return "did " + j.Key, nil
}

// block does not end by itself.
func (d *deeds) block(ctx context.Context, _ job) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// ask reports to the world that an orchestration waits for it.
func (d *deeds) ask(ctx context.Context, j job) (string, error) {
	d.mu.Lock()
	d.begin(ctx, j.Key)
	d.mu.Unlock()
	d.asked(j)
	return "asked", nil
}

// undo undoes the effect of work, complete or not.
func (d *deeds) undo(ctx context.Context, j job) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if anew, _ := d.begin(ctx, "undo "+j.Key); anew {
		d.installed[j.Key] = false
		d.undone = append(d.undone, j.Key)
	}
	return "", nil
}

func (d *deeds) echo(ctx context.Context, s string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, _, _ := strings.Cut(s, " ")
	d.begin(ctx, "echo "+key)
	return s, nil
}

func (d *deeds) draw() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drawn++
	return d.drawn
}

func (d *deeds) publish(all []Publication) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range all {
		var key string
		_ = json.Unmarshal(p.Payload, &key) // it is the text that the publication was made from
		if d.published[key] == nil {
			d.published[key] = map[string]bool{}
		}
		d.published[key][p.Key] = true
	}
}

// counts returns the number of calls of each key.
func (d *deeds) counts() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]int{}
	for key, calls := range d.calls {
		all[key] = len(calls)
	}
	for key, keys := range d.published {
		all["published "+key] = len(keys)
	}
	return all
}
