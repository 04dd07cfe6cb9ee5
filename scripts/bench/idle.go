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
	// idleTenants is the number of tenants with events before the measured hour.
	idleTenants = 25
	// hostLease is the renewal interval of the lease of the host's primary instance: its lease of 15 s, three seconds
	// before it expires.
	hostLease = 12 * time.Second
	// listenerLock is the default lease of a timer at the host, which renews it at half of that.
	listenerLock = time.Minute
	// flagInterval is the interval of the handler's check whether the app is drained.
	flagInterval = 3 * time.Second
	// often is the minimum number of runs in an hour of a timer function that is called without a pause in between.
	often = 60
	// pollingInterval is the host's default maximum polling interval of an empty queue.
	pollingInterval = time.Minute
)

// idleNode counts the requests of an idle hour of one node in the publisher's profile. The requests of timer
// functions are counted on the wire: each is called as often as in an hour, and at least twice. For an hourly one,
// the extra requests of its first call are its nightly work, of which an hour gets a part. The host's own requests
// are computed by its rules: it polls each queue of a function every maxPollingInterval, renews the lease of each
// timer function at half of listenerLockPeriod, its own every 12 s, and writes the status of a timer after each run.
// It does not write the status if that is off or the timer fires more than once a minute.
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

// must returns a file's text: an unreadable file is no JSON.
func must(text []byte, err error) []byte {
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// hour is the input for the computation of an hour's requests.
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

// functions returns those of the program, as it describes itself.
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

// byHost returns the host's own requests.
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

// duration reads a time in the form of host.json, "hh:mm:ss".
func duration(text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	return time.ParseDuration(strings.Replace(strings.Replace(text, ":", "h", 1), ":", "m", 1) + "s")
}

// anHour returns how often a timer fires in an hour, on average over a day.
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

// handler returns the handler's requests in its timers, over storage in which some tenants have had events. The hour
// begins when the outbox has checked these once more, and knows that nothing of them is left.
func (h hour) handler(ctx context.Context, w *wire, p program) (all float64, err error) {
	c, err := p.start(ctx, w)
	if err != nil {
		return 0, err
	}
	defer c.kill()
	err = errors.Join(hadEvents(ctx, w.server.Account()), c.fire(ctx, "outbox-sweep-timer"))
	for name, f := range h.functions {
		if f.Type != "timerTrigger" || err != nil {
			continue
		}
		var calls []float64
		for len(calls) < max(2, int(f.anHour())) && err == nil {
			var n float64
			n, err = h.call(ctx, w, c, name, len(calls) == 0 || f.anHour() < often)
			calls = append(calls, n)
		}
		all += anHourOf(calls, f.anHour())
	}
	return all, err
}

// call counts the handler's requests when a timer function is called, after a pause or immediately.
func (h hour) call(ctx context.Context, w *wire, c *deployed, name string, pause bool) (float64, error) {
	if pause { // long enough for the handler to check again whether the app is drained
		time.Sleep(flagInterval)
		if _, err := w.rest(ctx); err != nil {
			return 0, err
		}
	}
	before := w.count()
	err := c.fire(ctx, name)
	return float64(w.count() - before), err
}

// anHourOf returns the share of an hour in the counted calls of a timer function.
func anHourOf(calls []float64, often float64) (all float64) {
	if often <= 1 {
		first, again := calls[0], calls[1]
		return often*again + max(0, first-again)/24
	}
	for _, n := range calls {
		all += n
	}
	return all
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

// hadEvents lets tenants add and deliver events an hour ago.
func hadEvents(ctx context.Context, a azure.Account) error {
	t, tablesErr := azure.NewTables(a)
	q, queuesErr := azure.NewQueues(a)
	b, blobsErr := azure.NewBlobs(a)
	if err := errors.Join(tablesErr, queuesErr, blobsErr); err != nil {
		return err
	}
	m, err := newMailroom(ctx, outbox.Config{Tables: t, Queues: q, Blobs: b, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	for i := 0; i < idleTenants && err == nil; i++ {
		if err = m.add(ctx, fmt.Sprintf("tenant-%d", i), 1); err == nil {
			err = m.deliver(ctx, fmt.Sprintf("tenant-%d", i), 1)
		}
	}
	return err
}
