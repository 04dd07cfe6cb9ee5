package orchestratortest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// shop sells one article: it takes it from the stock, charges for it, and sends it. FailEverywhere has to find its
// bugs, if any.
type shop struct {
	// restocks is an undo that is not idempotent: it returns an article that was never taken.
	restocks bool
	// remembers is a memory outside of the run: an article taken once is not taken again, although it was returned.
	remembers bool
	// charges is work without a key: each call repeats it.
	charges bool
	// swallows ignores a failure to send.
	swallows bool
	// refuses is work that cannot be repeated: it fails when it is already done.
	refuses bool
	// notes is another output when the mail could not be sent.
	notes bool
}

func (s shop) scenario(*testing.T) orchestratortest.Scenario[string, string] {
	stock, charged := 5, []string{}
	taken, remembered, sent := map[string]bool{}, map[string]bool{}, map[string]bool{}
	take := orchestrator.NewActivity("take", func(_ context.Context, order string) (int, error) {
		if taken[order] || s.remembers && remembered[order] {
			return 1, nil
		}
		stock--
		taken[order], remembered[order] = true, true
		return 1, nil
	}, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 3, FirstInterval: time.Minute}))
	putBack := orchestrator.NewActivity("put back", func(_ context.Context, order string) (int, error) {
		if s.restocks || taken[order] {
			stock++
			delete(taken, order)
		}
		return 0, nil
	})
	charge := orchestrator.NewActivity("charge", func(_ context.Context, order string) (int, error) {
		if s.refuses && slices.Contains(charged, order) {
			return 0, orchestrator.Permanent(errors.New("it is paid"))
		}
		if s.charges || !slices.Contains(charged, order) {
			charged = append(charged, order)
		}
		return 42, nil
	})
	send := orchestrator.NewActivity("send", func(_ context.Context, order string) (int, error) { sent[order] = true; return 0, nil })
	mail := orchestrator.NewActivity("mail", func(context.Context, string) (int, error) { return 0, nil })
	o := orchestrator.NewOrchestrator("sell", func(ctx *orchestrator.Context, order string) (string, error) {
		if _, err := charge.Call(ctx, order).Await(); err != nil {
			return "", err
		}
		_, err := take.Call(ctx, order, orchestrator.WithUndo(putBack, order)).Await()
		if err == nil {
			_, err = send.Call(ctx, order).Await()
		}
		if err != nil && !s.swallows {
			return "", errors.Join(err, orchestrator.Undo(ctx))
		}
		if _, err := mail.Call(ctx, order).Await(); err != nil && s.notes {
			return "sold, and nobody was told", nil
		} else if err != nil {
			return "", err
		}
		return "sold", nil
	})
	return orchestratortest.Scenario[string, string]{
		Orchestrator: o, Input: "o-1", Activities: []orchestrator.AnyActivity{take, putBack, charge, send, mail},
		Check: func(t *testing.T, r orchestratortest.Result[string]) {
			if r.Status == orchestrator.Completed && (stock != 4 || !sent["o-1"] || len(charged) != 1) {
				t.Errorf("it is %s: %d in stock, sent %v, charged %v\n%v", r.Output, stock, sent, charged, r.Ledger)
			}
		},
	}
}

// Correct shops pass, and each bug is found.
func TestFailEverywhere(t *testing.T) {
	t.Parallel()
	orchestratortest.FailEverywhere(t, shop{}.scenario)
	orchestratortest.CrashEverywhere(t, shop{}.scenario)
	t.Run("fallback", func(t *testing.T) {
		t.Parallel()
		orchestratortest.FailEverywhere(t, func(t *testing.T) orchestratortest.Scenario[string, string] {
			s := shop{notes: true}.scenario(t)
			s.Fallback = true
			return s
		})
	})
}

// Every call fails once in each way, and gets its second attempt.
func TestFailEverywhereCoversEveryCall(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	orchestratortest.FailAtEveryCall(t, func(t *testing.T) orchestratortest.Scenario[string, string] {
		s := shop{}.scenario(t)
		check := s.Check
		s.Check = func(t *testing.T, r orchestratortest.Result[string]) {
			check(t, r)
			for _, c := range r.Calls {
				if c.Failure != nil {
					seen[c.Name]++
				}
			}
			if r.Output != "sold" {
				t.Error(r)
			}
		}
		return s
	})
	for _, name := range []string{"charge", "take", "send", "mail"} {
		if seen[name] != 4 {
			t.Errorf("%s failed in %d runs, want 4", name, seen[name])
		}
	}
}

// Tasks are answered again when the next attempt starts over, and events reach the new sub-orchestrations: the run
// does not hang.
func TestPeopleAndEventsAreThereForTheSecondChance(t *testing.T) {
	t.Parallel()
	orchestratortest.FailEverywhere(t, func(*testing.T) orchestratortest.Scenario[none, string] {
		look := orchestrator.NewActivity("look", func(context.Context, string) (none, error) { return none{}, nil })
		child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, _ none) (string, error) {
			return orchestrator.Event[string](ctx, "picked up").Await()
		})
		o := orchestrator.NewOrchestrator("ask", func(ctx *orchestrator.Context, _ none) (string, error) {
			first, err := orchestrator.AskPerson[string](ctx, orchestrator.HumanTask{Name: "approve"}).Await()
			if err != nil {
				return "", err
			}
			by, err := child.Call(ctx, none{}).Await()
			if err != nil {
				return "", err
			}
			if _, err := look.Call(ctx, "it").Await(); err != nil {
				if _, err := look.Call(ctx, "again").Await(); err != nil { // from now on, no result is kept
					return "", err
				}
				return "", err
			}
			return first.Output + " " + by, nil
		})
		return orchestratortest.Scenario[none, string]{
			Orchestrator: o, Orchestrators: []orchestrator.AnyOrchestrator{child}, Activities: []orchestrator.AnyActivity{look},
			Steps: []orchestratortest.Step{{At: time.Hour, Task: "approve", Data: "yes"}, {At: 2 * time.Hour, To: "child", Event: "picked up", Data: "ann"}},
		}
	})
}
