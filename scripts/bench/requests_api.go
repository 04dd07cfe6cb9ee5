package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// apiCall is a call of the API, with all its consequences until the app is idle.
type apiCall struct {
	name, goal string
	// engine is the engine whose messages have been handled before, one for each call; "" for none.
	engine       string
	method, path string // {id} is the orchestration, {correlation} its correlation id, {row} the row key of its dead letter
	body         string
	want         int
	lines        string
}

// changeLines are those of most calls that change something. A started orchestration is in the sweeper's index.
const changeLines = "audit/apply orchestrationsParked/apply " + signalLines

// countedCalls is the number of counted calls.
const countedCalls = 16

// countedLinger is the maximum lag of the list of orchestrations.
const countedLinger = 3 * time.Second

func apiCalls() []apiCall {
	const durable = "/runtime/webhooks/durabletask"
	get, post := http.MethodGet, http.MethodPost
	return []apiCall{
		{name: "start", lines: changeLines + runLines, goal: "with the run that follows, of one operation", method: post, path: "/api/orchestrations", want: http.StatusAccepted,
			body: `{"orchestrator":"` + plainEngine + `","correlationId":"{correlation}","input":{"input":1}}`},
		{name: "raise", lines: changeLines + runLines, goal: "with the round that follows, and the end of the run", engine: waitingEngine, method: post, path: "/api/orchestrations/{id}/events/go", body: `1`, want: http.StatusAccepted},
		{name: "terminate", lines: changeLines + runLines, goal: "with the end of the run", engine: waitingEngine, method: post, path: "/api/orchestrations/{id}/terminate", body: `{"reason":"bench"}`, want: http.StatusAccepted},
		{name: "status", lines: "orchestrations/get orchestrations/query", engine: plainEngine, method: get, path: "/api/orchestrations/{id}", want: http.StatusOK},
		{name: "orchestrations", lines: "orchestrationsList/query orchestrations/get", goal: "a page of 16", engine: plainEngine, method: get, path: "/api/orchestrations?limit=16", want: http.StatusOK},
		{name: "history", lines: "history/query", goal: "a page of 16", engine: plainEngine, method: get, path: "/api/history?limit=16&engine=" + plainEngine, want: http.StatusOK},
		{name: "dlq", lines: "dlq/query", goal: "a page of 16", engine: failingEngine, method: get, path: "/api/dlq?limit=16&engine=" + failingEngine, want: http.StatusOK},
		{name: "tasks", lines: "orchestrationTasks/query", goal: "a page of 16", engine: askingEngine, method: get, path: "/api/tasks?limit=16", want: http.StatusOK},
		{name: "retry", lines: "dlq/get dlq/query dlq/apply queue/send " + changeLines + runLines, goal: "with the run that follows, of one operation", engine: failingEngine, method: post, path: "/api/dlq/" + failingEngine + "/{row}/retry", body: `{}`, want: http.StatusOK},
		{name: "complete", lines: "orchestrationTasks/get orchestrationTasks/apply " + changeLines + runLines, goal: "with the round that follows, and the end of the run", engine: askingEngine, method: post, path: "/api/tasks/{id}/{task}/complete", body: `{"output":"done"}`, want: http.StatusOK},
		{name: "timeline", lines: "dlq/query history/query orchestrations/get orchestrations/query orchestrations/scan", engine: plainEngine, method: get, path: "/api/timeline/{correlation}", want: http.StatusOK},
		{name: "durable-start", lines: changeLines + runLines, goal: "with the run that follows, of one operation", method: post, path: durable + "/orchestrators/" + plainEngine + "/" + plainEngine + "-{correlation}", body: `{"input":1}`, want: http.StatusAccepted},
		{name: "durable-raise", lines: changeLines + runLines, goal: "with the round that follows, and the end of the run", engine: waitingEngine, method: post, path: durable + "/instances/{id}/raiseEvent/go", body: `1`, want: http.StatusAccepted},
		{name: "durable-terminate", lines: changeLines + runLines, goal: "with the end of the run", engine: waitingEngine, method: post, path: durable + "/instances/{id}/terminate?reason=bench", want: http.StatusAccepted},
		{name: "durable-status", lines: "orchestrations/get orchestrations/query", engine: plainEngine, method: get, path: durable + "/instances/{id}", want: http.StatusOK},
		{name: "durable-list", lines: "orchestrationsList/query orchestrations/get orchestrations/query", goal: "a page of 16", engine: plainEngine, method: get, path: durable + "/instances?top=16", want: http.StatusOK},
	}
}

// scenario counts the cost of each call, by part, one after the other.
func (c apiCall) scenario() scenario {
	return counted("requests/api/"+c.name, c.goal, c.lines, c.engine+"-queue", func(ctx context.Context, d *countedApp) (int, error) {
		var all []called
		for _, phase := range []string{"warm", "counted"} { // one-time costs of a process are not counted
			var err error
			if all, err = c.prepare(ctx, d, phase); err != nil {
				return 0, err
			}
			d.begin()
			for _, one := range all {
				if err := c.call(ctx, d, one); err != nil {
					return 0, err
				}
			}
		}
		return len(all), nil
	})
}

// called identifies the objects of a call.
type called struct{ id, correlation, row, task string }

// prepare handles messages that leave the objects of the calls behind.
func (c apiCall) prepare(ctx context.Context, d *countedApp, phase string) (all []called, err error) {
	for i := range countedCalls {
		correlation := messageID(c.name, phase, i)
		all = append(all, called{id: c.engine + "-" + correlation, correlation: correlation, task: "1-1"})
	}
	if c.engine == "" {
		return all, nil
	}
	if err := (engineLoad{name: c.name, engine: c.engine, queue: c.engine + "-queue"}).run(ctx, d, phase, 0, countedCalls); err != nil {
		return nil, err
	}
	if c.engine == failingEngine {
		return all, d.rowsOf(ctx, all)
	}
	return all, pause(ctx, countedLinger) // the list of orchestrations lags
}

// rowsOf finds the dead letters.
func (d *countedApp) rowsOf(ctx context.Context, all []called) error {
	for i := range all {
		code, answer := d.call(ctx, http.MethodGet, "/api/dlq?engine="+failingEngine+"&correlationId="+all[i].correlation, nil)
		var page struct {
			Data struct{ Items []engine.DeadLetter }
		}
		if err := json.Unmarshal(answer, &page); err != nil || code != http.StatusOK || len(page.Data.Items) != 1 {
			return fmt.Errorf("dead letter of %s: %d %.500s, %w", all[i].correlation, code, answer, err)
		}
		all[i].row = page.Data.Items[0].RowKey
	}
	return nil
}

// atRest waits until all directly handled messages are done.
func (d *countedApp) atRest(ctx context.Context) error {
	for {
		if err := d.host(ctx, 0); err != nil {
			return err
		}
		left, err := d.polled.Length(ctx, "orchestration-signals")
		if err != nil || left == 0 {
			return err
		}
		if err := pause(ctx, requestLatency); err != nil {
			return err
		}
	}
}

// call sends a call, and waits for its consequences.
func (c apiCall) call(ctx context.Context, d *countedApp, one called) error {
	with := strings.NewReplacer("{id}", url.PathEscape(one.id), "{correlation}", one.correlation, "{row}", url.PathEscape(one.row), "{task}", one.task)
	code, answer := d.call(ctx, c.method, with.Replace(c.path), []byte(with.Replace(c.body)))
	if code != c.want {
		return fmt.Errorf("%s: %d %.500s", c.name, code, answer)
	}
	return d.atRest(ctx)
}
