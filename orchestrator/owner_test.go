package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/queues"
)

// owned is code in which every step depends on the tenant: replaying it for another one stalls it.
func owned() ([]AnyOrchestrator, []AnyActivity) {
	note := NewActivity("note", func(ctx context.Context, tenant string) (string, error) {
		if info := Info(ctx); info.TenantID != tenant {
			return "", Permanent(fmt.Errorf("the activity is of %q, its orchestration of %q", info.TenantID, tenant))
		}
		return tenant, nil
	})
	leaf := NewOrchestrator("leaf", func(ctx *Context, fails bool) (string, error) {
		if fails && ctx.Execution() < 3 {
			return "", errors.New("not yet")
		}
		return note.Call(ctx, ctx.TenantID()).Await()
	})
	test := NewOrchestrator("test", func(ctx *Context, what string) (string, error) {
		own, err := note.Call(ctx, ctx.TenantID()).Await()
		if err != nil {
			return "", err
		}
		switch what {
		case "child":
			return leaf.Call(ctx, false).Await()
		case "child that is tried again":
			return leaf.Call(ctx, true, WithRetry(Retry{MaxAttempts: 3, FirstInterval: time.Second})).Await()
		case "detached":
			_, err := leaf.Start(ctx, "leaf", false)
			return own, err
		case "continues as new":
			return own, ContinueAsNew("waits")
		case "waits":
			_, err := Event[int](ctx, "go").Await()
			return own, err
		case "asks":
			_, err := AskPerson[int](ctx, HumanTask{Name: "ask"}).Await()
			return own, err
		case "asks another's":
			_, err := AskPerson[int](ctx, HumanTask{Name: "ask", TenantID: "other"}).Await()
			return own, err
		case "many":
			var all []*Future[string]
			for range 4 {
				all = append(all, note.Call(ctx, ctx.TenantID()))
			}
			_, err := All(all...)
			return own, err
		case "fails once":
			if ctx.Execution() == 1 {
				return "", errors.New("not yet")
			}
		}
		return own, nil
	})
	return []AnyOrchestrator{test, leaf}, []AnyActivity{note}
}

// Through every change, an orchestration and everything it starts belong to the tenant for which it was started.
func TestOrchestrationsKeepTheirTenant(t *testing.T) {
	t.Parallel()
	const own = "Contoso"
	event := func(ctx context.Context, rt *Runtime) error { return rt.Raise(ctx, "a", "go", 1, "") }
	again := func(tenant, what string) func(context.Context, *Runtime) error {
		return func(ctx context.Context, rt *Runtime) error {
			s := startOf("a", what)
			s.TenantID, s.WillRetry = tenant, true
			_, err := rt.Run(ctx, s)
			return err
		}
	}
	for what, steps := range map[string][]func(context.Context, *Runtime) error{
		"plain":                     nil,
		"child":                     nil,
		"child that is tried again": nil,
		"detached":                  nil,
		"many":                      nil,
		"waits":                     {event},
		"continues as new":          {event},
		"plain, restarted":          {func(ctx context.Context, rt *Runtime) error { return orErr(rt.Restart(ctx, "a", "r")) }},
		"fails once":                {func(ctx context.Context, rt *Runtime) error { return orErr(rt.Rewind(ctx, "a", "r")) }},
		"fails once, run by all":    {again("", "fails once")},
		"fails once, run by itself": {again("CONTOSO", "fails once")},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				o := newOffice(t)
				o.orchestrators, o.activities = owned()
				rt := o.spreading(t)
				input, _, _ := strings.Cut(what, ",")
				s := startOf("a", input)
				s.TenantID = own
				noError(t, errorOf(rt.Start(t.Context(), s)))
				o.everything(t, rt)
				for _, step := range steps {
					rt = o.spreading(t) // another process, which only has the stored state
					noError(t, step(t.Context(), rt))
					o.everything(t, rt)
				}
				for _, s := range o.all(t, rt) {
					out := mustGet(t, rt, s.ID)
					for _, one := range append(out.Earlier, out) {
						wants(t, s.ID, one.TenantID, own)
					}
					wants(t, s.ID, fmt.Sprint(s.TenantID, " ", out.Status, " ", string(out.Output)), own+` Completed "`+own+`"`)
					history, err := rt.Export(t.Context(), s.ID)
					if err == nil {
						err = Replay(map[string]AnyOrchestrator{"test": o.orchestrators[0], "leaf": o.orchestrators[1]}[s.Orchestrator], history)
					}
					if err != nil {
						t.Errorf("%s: %v", s.ID, err)
					}
				}
			})
		})
	}
}

// A human task belongs to the tenant of its orchestration, unless it names another.
func TestHumanTasksBelongToTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ run, what, want string }{
		{"contoso", "asks", "contoso"}, {"contoso", "asks another's", "other"}, {"", "asks", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t)
			o.orchestrators, o.activities = owned()
			rt := o.spreading(t)
			s := startOf("a", c.what)
			s.TenantID = c.run
			o.start(t, rt, s)
			page, err := rt.Tasks().List(t.Context(), tasks.Filter{}, 10, "")
			if err != nil || len(page.Tasks) != 1 || page.Tasks[0].TenantID != c.want {
				t.Errorf("%+v: %+v, %v", c, page.Tasks, err)
			}
		})
	}
}

// A run is resumed for its own tenant and by the platform, and for no other tenant: neither while it runs nor after
// its end.
func TestRunsOfAnotherTenant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, began, by string
		run, start      error
	}{
		{"plain", "contoso", "CONTOSO", nil, nil},
		{"plain", "contoso", "", nil, nil},
		{"plain", "contoso", "fabrikam", ErrOtherTenant, ErrExists},
		{"waits", "contoso", "fabrikam", ErrOtherTenant, ErrExists},
		{"fails once", "contoso", "fabrikam", ErrOtherTenant, ErrExists},
		{"plain", "", "fabrikam", nil, ErrExists}, // it may be that a program which did not record tenants began it
		{"fails once", "", "fabrikam", nil, ErrExists},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t)
			o.orchestrators, o.activities = owned()
			rt := o.spreading(t)
			s := startOf("a", c.what)
			s.TenantID = c.began
			o.start(t, rt, s)
			s.TenantID = c.by
			_, started := rt.Start(t.Context(), s)
			isError(t, fmt.Sprintf("%+v: start", c), started, c.start)
			_, ran := rt.Run(t.Context(), s)
			isError(t, fmt.Sprintf("%+v: run", c), ran, c.run)
			if c.run != nil {
				isError(t, "it is a conflict", ran, ErrConflict)
			}
			wants(t, fmt.Sprintf("%+v", c), mustGet(t, rt, "a").TenantID, c.began)
		})
	}
}

// Runs that follow each other under one id may belong to different tenants; a caller of each sees the latest only if
// it belongs to the caller's tenant.
func TestRunsThatFollowBelongToTheirOwnTenants(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := newOffice(t)
		o.orchestrators, o.activities = owned()
		rt := o.spreading(t)
		for i, tenant := range []string{"", "contoso", "fabrikam"} {
			s := startOf("a", "plain")
			s.TenantID, s.CorrelationID, s.Reuse = tenant, fmt.Sprint("run ", i), ReuseEnded
			mustRun(t, rt, s)
			status, err := rt.Status(t.Context(), "a")
			if err != nil || status.TenantID != tenant || mustGet(t, rt, "a").TenantID != tenant {
				t.Errorf("%+v, %v", status, err)
			}
		}
		for caller, want := range map[string]int{"": 1, "contoso": 0, "Fabrikam": 1} {
			found, _, err := rt.List(t.Context(), Filter{TenantID: caller}, 10, "")
			if err != nil || len(found) != want {
				t.Errorf("%q sees %d, %v", caller, len(found), err)
			}
		}
		first := startOf("a", "plain")
		first.TenantID, first.CorrelationID, first.Reuse = "fabrikam", "run 1", ReuseEnded
		_, err := rt.Run(t.Context(), first)
		isError(t, "a past run of another tenant", err, ErrOtherTenant)
	})
}

// A caller that ends before its sub-orchestration has begun stops it under its own tenant.
func TestChildStoppedBeforeItBegins(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := newOffice(t)
		o.orchestrators, o.activities = owned()
		rt := o.spreading(t)
		s := startOf("a", "waits")
		s.TenantID = "contoso"
		o.start(t, rt, s)
		by := &caller{ID: "a", CorrelationID: "corr", TenantID: "contoso", Orchestrator: "leaf", Call: callRef{Execution: 1, Task: 2}}
		noError(t, rt.signal(t.Context(), "a:1-2", Payload{Command: commandCancel, Caller: by}, ""))
		o.settle(t, rt)
		if s, err := rt.Status(t.Context(), "a:1-2"); err != nil || s.TenantID != "contoso" {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestTenantsAreBounded(t *testing.T) {
	t.Parallel()
	for tenant, fits := range map[string]bool{string(make([]byte, 1)): false, "\xff": false, fmt.Sprintf("%0512d", 1): true, fmt.Sprintf("%0513d", 1): false} {
		s := startOf("a", 1)
		s.TenantID = tenant
		if err := s.validate(); (err == nil) != fits {
			t.Errorf("%.20q with %d bytes: %v", tenant, len(tenant), err)
		}
	}
}

// spreading returns a process that sends all but one of its concurrent activities to others.
func (o *office) spreading(t *testing.T) *Runtime {
	t.Helper()
	rt, err := New(Config{Tables: o.tables, Blobs: o.shelf, Queues: o.queues, ScheduleQueue: signalQueue, Orchestrators: o.orchestrators,
		Activities: o.activities, MaxInlineActivities: 1})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// everything delivers signals and activities until no message is left.
func (o *office) everything(t *testing.T, rt *Runtime) {
	t.Helper()
	for {
		o.settle(t, rt)
		batch := must(o.queues.Receive(t.Context(), activityQueue, 1, time.Hour))(t)
		if len(batch) == 0 {
			return
		}
		noError(t, errors.Join(rt.RunActivities(t.Context(), queues.Decode(batch[0].Text)), o.queues.Delete(t.Context(), activityQueue, batch[0].ID, batch[0].PopReceipt)))
	}
}

func orErr[T any](_ T, err error) error { return err }
