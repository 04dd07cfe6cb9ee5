package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// piece identifies a piece of work: equal pieces are the same work.
type piece struct{ engine, correlationID, tenant, instance, operation, content string }

// message returns the piece as the envelope. Blanks do not change the work.
func (p piece) message(blanks string) string {
	return fmt.Sprintf(`{"correlationId":%q,%s"tenantId":%q,"instanceId":%q,"operation":%q,"input":{"content":%q}}`,
		p.correlationID, blanks, p.tenant, p.instance, p.operation, p.content)
}

// pieceOf is the inverse of message. A foreign message has its correlation id as natural key.
func pieceOf(name string, body []byte) piece {
	var m struct {
		engine.Message
		Foreign string
		Input   task `json:"input"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		panic(err)
	}
	if m.Foreign != "" {
		return piece{name, m.Foreign, "", engine.PublisherInstance, "do", "foreign"}
	}
	return piece{name, m.CorrelationID, m.TenantID, m.InstanceID, m.Operation, m.Input.Content}
}

// workshop has an engine of each kind. The content of a message determines the results of its attempts.
type workshop struct {
	*enginetest.World

	mu     sync.Mutex
	failed map[piece]bool
}

var workshopEngines = []string{"plain", "instances", "tenants", "adapting"}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	s := &workshop{failed: map[piece]bool{}}
	s.World = enginetest.New(t, enginetest.Config{MaxDeliveries: 3000, Engines: func(enginetest.Stores) (all []engine.Definition) {
		for _, name := range workshopEngines {
			all = append(all, s.definition(name))
		}
		return all
	}})
	return s
}

type task struct {
	Piece   string
	Content string `json:"content"`
}

func (s *workshop) definition(name string) engine.Definition {
	do := orchestrator.NewActivity(name+"/do", func(_ context.Context, in task) (string, error) {
		p := pieceOf(name, []byte(in.Piece))
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case in.Content == "never":
			return "", orchestrator.Permanent(errors.New("never"))
		case in.Content == "later" && !s.failed[p]:
			s.failed[p] = true
			return "", errors.New("not yet")
		}
		return in.Piece, nil
	})
	d := engine.Definition{Name: name, Queue: name + "-queue", Operations: []orchestrator.AnyActivity{do},
		Orchestrator: engine.Orchestrate(name, func(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (string, error) {
			var in task
			if err := json.Unmarshal(r.Input, &in); err != nil {
				return "", orchestrator.Permanent(err)
			}
			in.Piece = piece{name, r.CorrelationID, r.TenantID, r.InstanceID, r.Operation, in.Content}.message("")
			if in.Content == "slow" {
				if err := ctx.Sleep(3 * time.Minute); err != nil {
					return "", err
				}
			}
			return do.Call(ctx, in).Await()
		})}
	switch name {
	case "instances":
		d.Singleton = engine.PerInstance
	case "tenants":
		d.Singleton = engine.PerTenant
	case "adapting":
		d.Adapt = func(body []byte) (engine.Message, bool, error) {
			var m struct{ Foreign string }
			if err := json.Unmarshal(body, &m); err != nil || m.Foreign == "" {
				return engine.Message{}, false, nil
			}
			return engine.Message{CorrelationID: m.Foreign, Operation: "do", Input: []byte(`{"content":"foreign"}`)}, true, nil
		}
	}
	return d
}

// check compares storage with the pieces that were sent: under each correlation id, one piece of work is done once or
// is the only dead letter of its kind, and all others are dead letters of conflicts.
func (s *workshop) check(ctx context.Context, sent map[piece]bool) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	letters := map[piece][]engine.DeadLetter{}
	for _, name := range workshopEngines {
		for _, l := range s.DeadLetters(name) {
			p := pieceOf(name, l.OriginalMessage)
			letters[p] = append(letters[p], l)
		}
	}
	holders := map[string]int{}
	for p := range sent {
		done, failed := 0, 0
		entries := s.History(p.engine, p.correlationID)
		for _, e := range entries {
			if by := superseder(e, entries); by != nil && (by.InstanceID != e.InstanceID || !strings.EqualFold(by.TenantID, e.TenantID) || e.Work != "" && e.Work != by.Work) {
				report("%+v is superseded by %+v", e, by)
			}
			if e.RunStatus == engine.StatusSucceeded && string(e.Output) == quoted(p.message("")) {
				done++
			}
		}
		conflicts := len(slices.DeleteFunc(slices.Clone(letters[p]), func(l engine.DeadLetter) bool { return !isConflict(l) }))
		failed = len(letters[p]) - conflicts
		id := p.engine + "/" + p.correlationID
		if conflicts == 0 {
			holders[id]++
		}
		switch {
		case conflicts > 0 && done+failed > 0:
			report("%+v is done %d times, has failed %d times, and is a conflict", p, done, failed)
		case conflicts == 0 && p.content == "never" && (failed == 0 || done > 0), conflicts == 0 && p.content != "never" && (done != 1 || failed > 0):
			report("%+v is done %d times and has %d dead letters: %+v", p, done, failed, entries)
		}
	}
	for id, n := range holders {
		if n != 1 {
			report("%s belongs to %d pieces of work", id, n)
		}
	}
	list, _, err := s.Runtime().List(ctx, orchestrator.Filter{}, 1000, "")
	if err != nil {
		report("%v", err)
	}
	for _, o := range list {
		if !o.Ended() {
			report("%s is %s", o.ID, o.Status)
		}
	}
	return problems
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// superseder returns the entry that supersedes another one, nil for none.
func superseder(e engine.Entry, entries []engine.Entry) *engine.Entry {
	if e.SupersededBy == "" {
		return nil
	}
	i := slices.IndexFunc(entries, func(by engine.Entry) bool { return by.RowKey == e.SupersededBy })
	if i < 0 {
		return &engine.Entry{}
	}
	return &entries[i]
}

// start starts a piece as the API does.
func start(ctx context.Context, p *enginetest.Process, what piece) error {
	s, err := p.Admit(ctx, orchestrator.Start{Orchestrator: what.engine, Input: []byte(what.message(""))})
	if err == nil {
		_, err = p.Runtime.Start(ctx, s)
	}
	return err
}

// retryAll retries every dead letter.
func (s *workshop) retryAll(t *testing.T) {
	t.Helper()
	retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: engine.NewDeadLetters(s.Tables, ""), Queues: s.Queues})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range workshopEngines {
		for _, l := range s.DeadLetters(name) {
			if _, err := retrier.Retry(t.Context(), name, l.RowKey, "test"); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.settle(t)
}

// settle delivers the remaining messages, and those that the sweeper sends.
func (s *workshop) settle(t *testing.T) {
	t.Helper()
	for woken := 1; woken > 0; {
		s.Restart(nil).Run()
		time.Sleep(3 * time.Hour) // virtual
		var err error
		if woken, err = s.Runtime().Sweep(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	}
}

// Producers reuse correlation ids in every way, over queues and HTTP, two processes fail at any call, and dead letters are
// retried: distinct work is done once or dead-lettered, and does not block or supersede other work.
func TestIdentityOfWork(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		type sending struct {
			queue, body string
			delay       time.Duration
			start       *piece // over HTTP; nil for a message
		}
		sent, all := map[piece]bool{}, []sending{}
		for range rapid.IntRange(1, 6).Draw(r, "messages") {
			p := piece{rapid.SampledFrom(workshopEngines).Draw(r, "engine"), rapid.SampledFrom([]string{"x", "y"}).Draw(r, "id"), rapid.SampledFrom([]string{"red", "blue"}).Draw(r, "tenant"),
				rapid.SampledFrom([]string{"a", "b"}).Draw(r, "instance"), rapid.SampledFrom([]string{"do", "undo"}).Draw(r, "operation"),
				rapid.SampledFrom([]string{"once", "again", "slow", "later", "never"}).Draw(r, "content")}
			foreign := p.engine == "adapting" && rapid.Bool().Draw(r, "foreign")
			if foreign {
				p = piece{p.engine, p.correlationID, "", engine.PublisherInstance, "do", "foreign"}
			}
			for i := range rapid.IntRange(1, 3).Draw(r, "copies") {
				delay := time.Duration(rapid.SampledFrom([]int{0, 0, 20, 100, 500}).Draw(r, "delay")) * time.Second
				if !foreign && rapid.IntRange(0, 4).Draw(r, "door") == 0 {
					all = append(all, sending{delay: delay, start: &p})
					continue
				}
				sent[p] = true
				body := p.message(strings.Repeat(" ", i))
				if foreign {
					body = fmt.Sprintf(`{"foreign":%q,"sent":%d}`, p.correlationID, i)
				}
				all = append(all, sending{queue: p.engine + "-queue", body: body, delay: delay})
			}
		}
		var plans []*enginetest.Plan
		for i := range 2 {
			plans = append(plans, &enginetest.Plan{At: rapid.IntRange(0, 60).Draw(r, fmt.Sprint("at", i)),
				Fault: rapid.SampledFrom(faults.Faults()).Draw(r, fmt.Sprint("fault", i))})
		}
		retry := rapid.Bool().Draw(r, "retry")
		var problems []string
		synctest.Test(t, func(t *testing.T) {
			s := newWorkshop(t)
			var hosts sync.WaitGroup
			var mu sync.Mutex
			for _, m := range all {
				if m.start == nil {
					s.SendIn(m.queue, m.body, m.delay)
					continue
				}
				p := s.Restart(nil)
				hosts.Go(func() {
					time.Sleep(m.delay) // virtual
					if start(t.Context(), p, *m.start) == nil {
						mu.Lock()
						defer mu.Unlock()
						sent[*m.start] = true
					}
				})
			}
			for _, plan := range plans {
				p := s.Restart(plan)
				hosts.Go(func() { p.Run() })
			}
			hosts.Wait()
			s.settle(t)
			problems = s.check(t.Context(), sent)
			if retry {
				s.retryAll(t)
				problems = append(problems, s.check(t.Context(), sent)...)
			}
		})
		if len(problems) > 0 {
			r.Fatalf("%s\nsent: %+v", strings.Join(problems, "\n"), all)
		}
	})
}
