package orchestrator

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// clinic is an office with damaged orchestrations: "a" is, "b" next to it never.
type clinic struct {
	*office
	mu   sync.Mutex
	told []Damage // by Config.Damaged
	deaf error    // the answer of Config.Damaged
}

// newClinic has an orchestrator that leaves something of every kind behind, waits for an event, and ends.
func newClinic(t *testing.T) *clinic {
	t.Helper()
	c := &clinic{office: newOffice(t)}
	step := c.ledger.step("step")
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) { return Event[int](ctx, "child").Await() })
	main := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		large, err := SideEffect(ctx, "large", func() string { return strings.Repeat("x", spillFrom) })
		for i := range 3 {
			if err == nil {
				_, err = step.Call(ctx, len(large)+i).Await()
			}
		}
		if err != nil {
			return 0, err
		}
		if n == 7 { // with the remains of a damaged one
			called, asked := child.Call(ctx, 1), AskPerson[string](ctx, HumanTask{Name: "look at it"})
			Any(ctx, called, asked)
		}
		if n == 8 { // with a message that can be lost
			if err := ctx.Sleep(time.Hour); err != nil {
				return 0, err
			}
		}
		return Event[int](ctx, "number").Await()
	})
	c.orchestrators, c.activities = []AnyOrchestrator{main, child}, []AnyActivity{step}
	return c
}

// open returns a process that reports damage to the clinic; nil only counts.
func (c *clinic) open(t *testing.T, plan *faults.Plan) *Runtime {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	return c.over(t, plan.Intercept)
}

func (c *clinic) over(t *testing.T, i faults.Interceptor) *Runtime {
	t.Helper()
	rt, err := New(Config{Tables: faults.Tables(c.tables, i), Blobs: faults.Blobs(c.shelf, i), Queues: faults.Queues(c.queues, i),
		ScheduleQueue: signalQueue, Orchestrators: c.orchestrators, Activities: c.activities, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Damaged: func(_ context.Context, d Damage) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.deaf == nil {
				c.told = append(c.told, d)
			}
			return c.deaf
		}})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// admit starts orchestrations, and ends them if ends is set.
func (c *clinic) admit(t *testing.T, rt *Runtime, ends bool, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if out := c.start(t, rt, startOf(id, 1)); out.Status != Running {
			t.Fatalf("%s: %s %v", id, out.Status, out.Failure)
		}
		if !ends {
			continue
		}
		isError(t, "raise", rt.Raise(t.Context(), id, "number", 1, ""), nil)
		if c.rest(t, rt); mustGet(t, rt, id).Status != Completed {
			t.Fatalf("%s: %s", id, mustGet(t, rt, id).Status)
		}
	}
}

// injury is one kind of damage to an orchestration.
type injury struct {
	do func(t *testing.T, c *clinic, id string)
	// hidden is set if no status shows the orchestration.
	hidden bool
}

func injuries() map[string]injury {
	return map[string]injury{
		"garbage in the last round":  {do: spoils(func(rows []tables.Entity) int { return len(rows) - 1 })},
		"garbage in a middle round":  {do: spoils(func([]tables.Entity) int { return 1 })},
		"garbage in the first round": {do: spoils(func([]tables.Entity) int { return 0 })},
		"an unknown encoding":        {do: alters(func(rows []tables.Entity) int { return len(rows) - 1 }, columnEncoding, "runes;2")},
		"a middle round is missing":  {do: loses(roundKey(1, 2))},
		"the first round is missing": {do: loses(roundKey(1, 1))},
		"all rounds are missing":     {do: losesRounds},
		"the status is missing":      {do: loses(statusRow), hidden: true},
		"the status counts others":   {do: miscounts},
		"a blob is missing":          {do: losesBlobs},
		"status and first are missing": {hidden: true, do: func(t *testing.T, c *clinic, id string) {
			t.Helper()
			loses(statusRow)(t, c, id)
			loses(roundKey(1, 1))(t, c, id)
		}},
	}
}

// rounds returns the rows of rounds of an orchestration.
func (c *clinic) rounds(t *testing.T, id string) []tables.Entity {
	t.Helper()
	var rounds []tables.Entity
	for _, e := range c.rows(t, id) {
		if strings.HasPrefix(e.Row, roundPrefix) {
			rounds = append(rounds, e)
		}
	}
	return rounds
}

func alters(which func([]tables.Entity) int, column string, value any) func(*testing.T, *clinic, string) {
	return func(t *testing.T, c *clinic, id string) {
		t.Helper()
		rounds := c.rounds(t, id)
		e := rounds[which(rounds)]
		e.Properties[column] = value
		c.apply(t, tables.Replace(e))
	}
}

func spoils(which func([]tables.Entity) int) func(*testing.T, *clinic, string) {
	return alters(which, columnData, []byte("\x00\xffgarbage"))
}

func loses(row string) func(*testing.T, *clinic, string) {
	return func(t *testing.T, c *clinic, id string) {
		t.Helper()
		c.apply(t, tables.Delete(tables.Key{Partition: tables.EscapeKey(id), Row: row}, ""))
	}
}

func losesRounds(t *testing.T, c *clinic, id string) {
	t.Helper()
	for _, e := range c.rounds(t, id) {
		c.apply(t, tables.Delete(e.Key, ""))
	}
}

func miscounts(t *testing.T, c *clinic, id string) {
	t.Helper()
	status, err := c.tables.Get(t.Context(), "orchestrations", tables.Key{Partition: tables.EscapeKey(id), Row: statusRow})
	if err != nil {
		t.Fatal(err)
	}
	status.Properties["StateVersion"] = int64(77)
	c.apply(t, tables.Replace(status))
}

func losesBlobs(t *testing.T, c *clinic, id string) {
	t.Helper()
	lost := 0
	for _, name := range c.shelf.all() {
		if strings.HasPrefix(name, tables.EscapeKey(id)+"/") {
			isError(t, "delete", c.shelf.Delete(t.Context(), "orchestrations", name), nil)
			lost++
		}
	}
	if lost == 0 {
		t.Fatal("it has no blob")
	}
}

// isDeaf makes Config.Damaged fail, or not.
func (c *clinic) isDeaf(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = err
}

// reported returns how often Config.Damaged accepted damage.
func (c *clinic) reported() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.told)
}

// knownDamaged returns the ids of the known damaged orchestrations.
func knownDamaged(t *testing.T, rt *Runtime) string {
	t.Helper()
	found, _, err := rt.Damages(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, d := range found {
		if d.Reason == "" || d.Since.After(time.Now()) || d.Since.IsZero() {
			t.Errorf("%+v", d)
		}
		ids = append(ids, d.ID)
	}
	return strings.Join(ids, " ")
}
