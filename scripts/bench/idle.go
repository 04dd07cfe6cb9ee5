package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/ncrontab"
	"github.com/vibedata/roundhouse/outbox"
)

const (
	// idleTenants is how many tenants have had events before the hour that is counted.
	idleTenants = 25
	// hostLease is how often the host renews the lease by which one of its instances is the primary one: its lease of 15 s, three
	// seconds before it would end.
	hostLease = 12 * time.Second
	// listenerLock is for how long the host takes the lease of a timer when host.json does not say: it renews it at half of that.
	listenerLock = time.Minute
	// pollingInterval is how rarely the host asks an empty queue when host.json does not say.
	pollingInterval = time.Minute
)

// idleNode counts the requests of an hour in which nothing happens, of one node in the publisher's context. What timer functions
// do is counted on the wire, once with everything to do and once more at once, and multiplied by their schedules: what the first run
// does beyond the second is taken to be done once an hour. What the host does by itself is computed by its rules: it asks each queue
// of a function every maxPollingInterval, renews the lease of each timer function at half of listenerLockPeriod, its own every 12 s,
// and writes the status of a timer after each run, unless that is off or the timer fires more than once a minute.
func idleNode() scenario {
	metrics := []metric{
		{"idle/host/polls", "requests/h", "the host's, of the queues of all queue functions"},
		{"idle/host/leases", "requests/h", "the host's, of timers and its own; and the status of timers"},
		{"idle/handler", "requests/h", "the handler's, in its timers"},
		{"idle/requests", "requests/h", "goal 4000 or less"},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) (values []float64, err error) {
		err = overWire(ctx, func(w *wire, p program) error {
			var h hour
			if h.functions, err = p.functions(ctx); err != nil {
				return err
			}
			if err := json.Unmarshal(must(os.ReadFile("host.json")), &h.host); err != nil {
				return fmt.Errorf("read host.json: %w", err)
			}
			own, err := h.handler(ctx, w, p)
			polls, leases, hostErr := h.byHost()
			values = []float64{polls, leases, own, polls + leases + own}
			return errors.Join(err, hostErr)
		})
		return values, err
	}}
}

// must is a file's text: what cannot be read is no JSON.
func must(text []byte, err error) []byte {
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// hour is what an hour's requests are computed of.
type hour struct {
	functions map[string]binding
	host      struct {
		Extensions struct {
			Queues struct{ MaxPollingInterval string }
		}
		Singleton struct{ ListenerLockPeriod string }
	}
}

// binding is the trigger of a function.
type binding struct {
	Type, Schedule string
	UseMonitor     *bool
}

// functions are those of the program, as it describes itself.
func (p program) functions(ctx context.Context) (map[string]binding, error) {
	cmd := exec.CommandContext(ctx, p.path, "manifest")
	cmd.Env = append(os.Environ(), "ROUNDHOUSE_CONTEXT=publisher", "FUNCTIONS_APP_ROOT_PATH=.")
	out, err := cmd.Output()
	var manifest struct {
		Functions map[string]struct{ Bindings []binding }
	}
	if err = errors.Join(err, json.Unmarshal(out, &manifest)); err != nil {
		return nil, fmt.Errorf("ask the handler for its manifest: %w", err)
	}
	all := map[string]binding{}
	for name, f := range manifest.Functions {
		all[name] = f.Bindings[0]
	}
	return all, nil
}

// byHost is what the host does by itself.
func (h hour) byHost() (polls, leases float64, err error) {
	poll, pollErr := duration(h.host.Extensions.Queues.MaxPollingInterval, pollingInterval)
	lock, lockErr := duration(h.host.Singleton.ListenerLockPeriod, listenerLock)
	if err := errors.Join(pollErr, lockErr); err != nil {
		return 0, 0, fmt.Errorf("host.json: %w", err)
	}
	leases = float64(time.Hour / hostLease)
	for _, f := range h.functions {
		switch f.Type {
		case "queueTrigger":
			polls += float64(time.Hour) / float64(poll)
		case "timerTrigger":
			leases += float64(time.Hour) / float64(lock/2)
			if often := f.anHour(); often <= 60 && (f.UseMonitor == nil || *f.UseMonitor) {
				leases += often
			}
		}
	}
	return polls, leases, nil
}

// duration reads a time as host.json has it, "hh:mm:ss".
func duration(text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	return time.ParseDuration(strings.Replace(strings.Replace(text, ":", "h", 1), ":", "m", 1) + "s")
}

// anHour is how often a timer fires in an hour, on average over a day.
func (b binding) anHour() float64 {
	expression, err := ncrontab.Parse(b.Schedule)
	if err != nil {
		return 0 // the host would refuse it, too
	}
	begin, fired := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	for at := expression.Next(begin.Add(-time.Second)); at.Before(begin.Add(24 * time.Hour)); at = expression.Next(at) {
		fired++
	}
	return float64(fired) / 24
}

// handler is what the handler does in its timers, over storage in which some tenants have had events.
func (h hour) handler(ctx context.Context, w *wire, p program) (float64, error) {
	c, err := p.start(ctx, w)
	if err != nil {
		return 0, err
	}
	defer c.kill()
	if err := hadEvents(ctx, w.server.Account()); err != nil {
		return 0, err
	}
	all, counts := 0.0, [2]map[string]float64{{}, {}}
	for _, run := range counts {
		for name, f := range h.functions {
			if f.Type != "timerTrigger" {
				continue
			}
			if _, err := w.rest(ctx); err != nil {
				return 0, err
			}
			w.reset()
			if err := c.fire(ctx, name); err != nil {
				return 0, err
			}
			seen, err := w.rest(ctx)
			if err != nil {
				return 0, err
			}
			run[name] = float64(len(seen))
		}
	}
	for name, again := range counts[1] {
		all += again*h.functions[name].anHour() + max(0, counts[0][name]-again)*min(1, h.functions[name].anHour())
	}
	return all, nil
}

// fire calls a timer function as the host does.
func (c *deployed) fire(ctx context.Context, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.address+"/"+name, strings.NewReader(`{"Data":{"timer":{"ScheduleStatus":null,"IsPastDue":false}},"Metadata":{}}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("call %s: %w", name, err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		return fmt.Errorf("call %s: %s: %.500s", name, answer.Status, text)
	}
	return nil
}

// hadEvents lets tenants add events, and has them delivered.
func hadEvents(ctx context.Context, a azure.Account) error {
	t, tablesErr := azure.NewTables(a)
	q, queuesErr := azure.NewQueues(a)
	b, blobsErr := azure.NewBlobs(a)
	if err := errors.Join(tablesErr, queuesErr, blobsErr); err != nil {
		return err
	}
	m, err := newMailroom(ctx, outbox.Config{Tables: t, Queues: q, Blobs: b})
	for i := 0; i < idleTenants && err == nil; i++ {
		if err = m.add(ctx, fmt.Sprintf("tenant-%d", i), 1); err == nil {
			err = m.deliver(ctx, fmt.Sprintf("tenant-%d", i), 1)
		}
	}
	return err
}
