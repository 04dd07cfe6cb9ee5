package update_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

type scenario = orchestratortest.Scenario[engine.Message, update.Result]

type result = orchestratortest.Result[update.Result]

// message returns a message for the instance, with the correlation id of the test kit.
func message(operation, input string) engine.Message {
	return engine.Message{CorrelationID: "test", InstanceID: instance, Operation: operation, Input: json.RawMessage(input)}
}

func (s *site) scenario(t *testing.T, m engine.Message, check func(*testing.T, result), steps ...orchestratortest.Step) scenario {
	t.Helper()
	d := update.Definition(s.steps(t, s.registry))
	return scenario{Orchestrator: d.Orchestrator, Activities: append(d.Operations, d.Activities...), Input: m, Steps: steps, Check: check}
}

const (
	twoUp   = `{"version":"2.0","components":[{"name":"web","version":"1.1"},{"name":"db","version":"8"}]}`
	withNew = `{"version":"2.0","components":[{"name":"new","version":"1"},{"name":"web","version":"1.1"},{"name":"db","version":"`
)

// before returns the initial state of the site.
func before() state {
	return state{Web: "1.0", Db: "7", Noted: map[string]string{"cache": "3"}}
}

// Every outcome of an update, with a crash at any point: the components, the registry, the order of the changes, and
// the free lock.
func TestUpdates(t *testing.T) {
	t.Parallel()
	decide := func(yes bool) []orchestratortest.Step {
		return []orchestratortest.Step{{At: time.Minute, Task: update.TaskApproval, Data: update.Decision{Approved: yes}, By: "ann"}}
	}
	asked := strings.Replace(twoUp, "{", `{"approval":{"deadlineSeconds":3600},`, 1)
	done := func(change func(*state)) state {
		s := before()
		change(&s)
		return s
	}
	updated := done(func(s *state) {
		s.Web, s.Db, s.Version = "1.1", "8", "2.0"
		s.Noted = map[string]string{"cache": "3", "web": "1.1", "db": "8"}
	})
	rolledBack := func(web, db string) state {
		return done(func(s *state) {
			if web != "" {
				s.Noted["web"] = web
			}
			if db != "" {
				s.Noted["db"] = db
			}
		})
	}
	for name, c := range map[string]struct {
		operation, input string
		steps            []orchestratortest.Step
		want             string // of the error, "" for none
		state            state
		log              string // the requests to the components, in order
	}{
		"updated":         {input: twoUp, state: updated, log: "web 1.1, db 8"},
		"approved":        {input: asked, state: updated, log: "web 1.1, db 8", steps: decide(true)},
		"rejected":        {input: asked, state: before(), steps: decide(false)},
		"nobody approves": {input: asked, state: before(), want: "nobody has approved"},
		"one component": {operation: "component-update", input: `{"components":[{"name":"web","version":"1.1"}]}`, log: "web 1.1",
			state: done(func(s *state) { s.Web, s.Noted["web"] = "1.1", "1.1" })},
		"nothing to do": {input: `{"version":"2.0","components":[{"name":"web","version":"1.0"}]}`,
			state: done(func(s *state) { s.Version, s.Noted["web"] = "2.0", "1.0" })},
		"the last fails": {input: withNew + updatetest.Broken + `"}]}`, want: "it does not start; all components are what they were",
			log: "new 1, web 1.1, db 0.0.0-broken, db 7, web 1.0, new -", state: rolledBack("1.0", "7")},
		"the last never gets ready": {input: withNew + updatetest.Endless + `"}]}`, want: "all components are what they were",
			log: "new 1, web 1.1, db 0.0.0-endless, db 7, web 1.0, new -", state: rolledBack("1.0", "7")},
		"the last is refused": {input: withNew + updatetest.Forbidden + `"}]}`, want: "the component refuses; all components are what they were",
			log: "new 1, web 1.1, web 1.0, new -", state: rolledBack("1.0", "7")},
		"canceled in the middle": {input: withNew + updatetest.Endless + `"}]}`, want: "canceled", steps: []orchestratortest.Step{{At: 5 * time.Minute, Command: "cancel"}},
			log: "new 1, web 1.1, db 0.0.0-endless, db 7, web 1.0, new -", state: rolledBack("1.0", "7")},
		"malformed":         {input: `{"version":"../2","components":[]}`, want: "invalid input", state: before()},
		"an unknown field":  {input: `{"versoin":"2.0"}`, want: "unknown field", state: before()},
		"another operation": {operation: "explode", input: twoUp, want: "neither process nor component-update", state: before()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orchestratortest.CrashEverywhere(t, func(t *testing.T) scenario {
				t.Helper()
				s := newSite(t)
				return s.scenario(t, message(c.operation, c.input), func(t *testing.T, r result) {
					t.Helper()
					if (r.Err == nil) != (c.want == "") || (r.Err != nil && !strings.Contains(r.Err.Error(), c.want)) {
						t.Errorf("error %v, want %q", r.Err, c.want)
					}
					if r.Err != nil && r.Status == orchestrator.Failed && !orchestrator.IsPermanent(r.Err) {
						t.Errorf("another attempt would follow: %v", r.Err)
					}
					if diff := cmp.Diff(c.state, s.state(t)); diff != "" {
						t.Errorf("state (-want +got):\n%s", diff)
					}
					got := strings.ReplaceAll(strings.Join(s.server.Log(), ", "), instance+" ", "")
					if got != c.log {
						t.Errorf("asked for %q, want %q", got, c.log)
					}
				}, c.steps...)
			})
		})
	}
}

// The engine decides as when the golden histories were written.
func TestGolden(t *testing.T) {
	t.Parallel()
	for file, input := range map[string]string{"golden": twoUp, "golden-rollback": withNew + updatetest.Broken + `"}]}`} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			orchestratortest.Golden(t, "testdata/"+file+".json", newSite(t).scenario(t, message("", input), nil))
		})
	}
	asked := strings.Replace(twoUp, "{", `{"approval":{"roles":["approver"]},`, 1)
	orchestratortest.Golden(t, "testdata/golden-approval.json", newSite(t).scenario(t, message("", asked), nil,
		orchestratortest.Step{At: time.Hour, Task: update.TaskApproval, Data: update.Decision{Approved: true, Note: "go"}, By: "ann"}))
}
