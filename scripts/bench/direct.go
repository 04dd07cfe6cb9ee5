package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// directSamples is the number of measured requests of each kind, directPause their interval: nothing else runs
	// meanwhile.
	directSamples = 100
	directPause   = 100 * time.Millisecond
	// directRest is the time until a host is idle: each poll that finds nothing increases the next interval.
	directRest = 25 * time.Second
	// directNap is the length of the timers: an orchestration is not parked for less than half a minute. directLimit
	// bounds the wait for work that is not done immediately.
	directNap   = 45 * time.Second
	directLimit = time.Minute
)

// directKind is a kind of request, with the time from the request to its effect, by the orchestration's own record.
type directKind struct {
	name, goal string
	// before prepares an orchestration; nil for none.
	before func(ctx context.Context, url, id string) error
	// request is measured from its beginning; nil: the request of before is measured.
	request func(ctx context.Context, url, id string) error
	effect  func(o orchestrator.Outcome, requested time.Time) time.Duration
}

func directKinds() []directKind {
	lastCall := func(o orchestrator.Outcome, requested time.Time) time.Duration {
		return o.Calls[len(o.Calls)-1].EndedAt.Sub(requested)
	}
	start := func(input string) func(context.Context, string, string) error {
		return func(ctx context.Context, url, id string) error {
			return postTo(ctx, url+"/api/orchestrations", `{"orchestrator": "`+hosts.Engine+`", "correlationId": "`+id+`", "input": {"input": `+input+`}}`)
		}
	}
	to := func(what, body string) func(context.Context, string, string) error {
		return func(ctx context.Context, url, id string) error {
			return postTo(ctx, url+"/api/orchestrations/"+hosts.ID(id)+"/"+what, body)
		}
	}
	return []directKind{
		{"start", "from the request until the first activity has run; goal 100", nil, start(`{"calls": 1}`), lastCall},
		{"event", "until the activity has run that waits for it; goal 100", start(`{"event": true, "calls": 1}`), to("events/go", "true"), lastCall},
		{"command", "of a termination, until the run has ended; goal 100", start(`{"event": true}`), to("terminate", `{"reason": "bench"}`),
			func(o orchestrator.Outcome, requested time.Time) time.Duration { return o.EndedAt.Sub(requested) }},
		{"timer", fmt.Sprintf("later than a timer of %v is due; goal 100", directNap), start(fmt.Sprintf(`{"naps": 1, "nap": %d, "calls": 1}`, directNap)), nil,
			func(o orchestrator.Outcome, _ time.Time) time.Duration {
				return lastCall(o, o.Calls[0].ScheduledAt.Add(directNap))
			}},
	}
}

// takenAtOnce measures the time from an HTTP request to its effect, in an idle app, under a local host with the
// deployed host.json.
func takenAtOnce() scenario {
	var metrics []metric
	for _, k := range directKinds() {
		metrics = append(metrics, metric{"direct/" + k.name + "/p50_ms", "ms", ""}, metric{"direct/" + k.name + "/p99_ms", "ms", k.goal})
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) (values []float64, err error) {
		err = withAccounts(ctx, 1, func(dir string, accounts []azure.Account) error {
			values, err = measureDirect(ctx, dir, accounts[0])
			return err
		})
		return values, err
	}}
}

func measureDirect(ctx context.Context, dir string, account azure.Account) ([]float64, error) {
	cluster, err := hosts.New(hosts.Config{Dir: dir, Account: account})
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	host, err := cluster.Start(ctx)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, directRest); err != nil {
		return nil, err
	}
	var values []float64
	for _, k := range directKinds() {
		took, err := k.measure(ctx, cluster, host.URL())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		values = append(values, percentile([][]float64{took}, 50), percentile([][]float64{took}, 99))
	}
	return values, nil
}

// measure returns the time of each request to its effect, in milliseconds.
func (k directKind) measure(ctx context.Context, cluster *hosts.Cluster, url string) ([]float64, error) {
	name := func(i int) string { return fmt.Sprintf("%s-%d", k.name, i) }
	if k.before != nil {
		for i := range directSamples {
			if err := k.before(ctx, url, name(i)); err != nil {
				return nil, err
			}
			if err := pause(ctx, directPause); err != nil { // timers that start together are due together
				return nil, err
			}
		}
		if err := pause(ctx, directRest); err != nil {
			return nil, err
		}
	}
	requested := make([]time.Time, directSamples)
	for i := range directSamples {
		if k.request == nil {
			break
		}
		requested[i] = time.Now()
		if err := k.request(ctx, url, name(i)); err != nil {
			return nil, err
		}
		if err := pause(ctx, directPause); err != nil {
			return nil, err
		}
	}
	var took []float64
	for i := range directSamples {
		o, err := ended(ctx, cluster, hosts.ID(name(i)))
		if err != nil {
			return nil, err
		}
		took = append(took, float64(k.effect(o, requested[i]).Microseconds())/1000)
	}
	return took, nil
}

// ended waits for the end of an orchestration.
func ended(ctx context.Context, cluster *hosts.Cluster, id string) (orchestrator.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, directLimit)
	defer cancel()
	for {
		in, err := cluster.Inspect(ctx, id)
		if err == nil && in.Outcome.Ended() {
			return in.Outcome, nil
		}
		if paused := pause(ctx, directPause); paused != nil {
			return orchestrator.Outcome{}, fmt.Errorf("orchestration %s is %s after %v: %w: %w", id, in.Outcome.Status, directLimit, paused, err)
		}
	}
}

func postTo(ctx context.Context, url, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("POST %s: %s: %s", url, answer.Status, text)
	}
	return err
}
