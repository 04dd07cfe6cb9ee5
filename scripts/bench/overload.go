package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

const (
	// overloadTime is the time for which the messages keep the slow storage busy, not counting futile requests.
	overloadTime = time.Minute
	// overloadRequests is the approximate number of requests of a message.
	overloadRequests = 7
	// overloadIdle is the time for which the requests of an idle app are counted.
	overloadIdle = 30 * time.Second
	// overloadLimit bounds the wait until all messages are done.
	overloadLimit = 10 * time.Minute
	// overloadDrained is the number of messages that two hosts drain while they are killed and frozen.
	overloadDrained = 1500
)

// overloadSteps returns the times that the slow storage takes for each request, one at a time.
func overloadSteps() []time.Duration {
	return []time.Duration{60 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond}
}

// overloads returns the scenarios of slow storage and of too much work.
func overloads() []scenario {
	slow := []metric{
		{"overload/goodput_ratio", "ratio", "goal 0.9: messages per request of storage that serves one at a time, against undisturbed storage; the worst of 60, 150 and 400 ms"},
		{"overload/copies_max", "messages", "goal 2: of one signal"},
		{"overload/false_outages", "outages", "goal 0"},
		{"overload/recovery_s", "s", "goal 10: from quick storage until messages that were sent 5 s before are done, beyond the time on undisturbed storage"},
	}
	drain := []metric{
		{"overload/drain_1500/s", "s", "1,500 messages at two hosts, with kills and freezes"},
		{"overload/drain_1500/lost", "messages", "goal 0"},
		{"overload/drain_1500/stuck", "messages", "goal 0: not done within 10 min"},
		{"overload/drain_1500/copies_max", "messages", "goal 2: of one signal"},
	}
	return []scenario{
		{slow, func(ctx context.Context, _ time.Duration) ([]float64, error) { return overloadSlow(ctx) }},
		{drain, func(ctx context.Context, _ time.Duration) ([]float64, error) { return overloadDrain(ctx) }},
	}
}

// throttle is slow storage for a Gate: it serves one request at a time, and counts requests and copies of signals.
type throttle struct {
	turn     sync.Mutex
	took     atomic.Int64
	requests atomic.Int64

	mu     sync.Mutex
	copies map[string]int
}

func (s *throttle) see(r *http.Request) {
	s.requests.Add(1)
	s.count(r)
	if took := time.Duration(s.took.Load()); took > 0 {
		s.turn.Lock()
		defer s.turn.Unlock()
		time.Sleep(took)
	}
}

// during counts the requests during a call.
func (s *throttle) during(do func() error) (float64, error) {
	before := s.requests.Load()
	err := do()
	return float64(s.requests.Load() - before), err
}

// count counts the copies of signals.
func (s *throttle) count(r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/messages") {
		return
	}
	body, err := io.ReadAll(r.Body)
	if r.Body = io.NopCloser(bytes.NewReader(body)); err != nil {
		return
	}
	_, text, _ := strings.Cut(string(body), "<MessageText>")
	text, _, _ = strings.Cut(text, "</MessageText>")
	signal, err := orchestrator.DecodeSignal(queues.Decode(text))
	if err != nil || signal.SignalID == "" || strings.HasPrefix(signal.SignalID, "node:") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copies[signal.SignalID]++
}

func (s *throttle) mostCopies() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := 0
	for _, n := range s.copies {
		most = max(most, n)
	}
	return most
}

// behind starts hosts whose handlers reach storage through a throttle.
func behind(ctx context.Context, dir string, account azure.Account, n int) (*trial, *throttle, error) {
	s := &throttle{copies: map[string]int{}}
	t := &trial{endStream: func() {}}
	var err error
	if t.gate, err = hosts.NewGate(account, s.see); err != nil {
		return nil, nil, err
	}
	if t.Cluster, err = hosts.New(hosts.Config{Dir: dir, Account: account, Handler: t.gate.Account(account.Name)}); err != nil {
		return nil, nil, errors.Join(err, t.gate.Close())
	}
	for range n {
		if err := t.start(ctx); err != nil {
			t.close()
			return nil, nil, err
		}
	}
	return t, s, nil
}

// sendMany sends messages for short work: with activities only, with a timer, and with children.
func (t *trial) sendMany(ctx context.Context, n int) (map[string]hosts.Progress, error) {
	all := map[string]hosts.Progress{}
	for i := range n {
		t.sent++
		id := fmt.Sprintf("short-%d", t.sent)
		work := []hosts.Work{{Calls: 2}, {Naps: 1, Nap: 6 * time.Second, Calls: 1}, {Children: 2, Calls: 1}}[i%3]
		if err := t.Send(ctx, id, work); err != nil {
			return nil, err
		}
		all[hosts.ID(id)] = hosts.Progress{}
	}
	return all, nil
}

func hasEnded(_, now hosts.Progress) bool { return now.Ended() }

func overloadSlow(ctx context.Context) (values []float64, err error) {
	steps := overloadSteps()
	values = []float64{1, 0, 0, 0}
	err = withAccounts(ctx, 2*len(steps), func(dir string, accounts []azure.Account) error {
		for i, took := range steps {
			n := int(overloadTime / took / overloadRequests)
			quick, err := overloadOnce(ctx, filepath.Join(dir, fmt.Sprintf("quick-%d", i)), accounts[2*i], n, 0)
			if err != nil {
				return err
			}
			slow, err := overloadOnce(ctx, filepath.Join(dir, fmt.Sprintf("slow-%d", i)), accounts[2*i+1], n, took)
			if err != nil {
				return fmt.Errorf("storage that takes %v: %w", took, err)
			}
			values[0] = min(values[0], quick.requests/slow.requests)
			values[1] = max(values[1], float64(slow.copies))
			values[2] += float64(slow.outages)
			values[3] = max(values[3], (slow.recovery - quick.recovery).Seconds())
		}
		return nil
	})
	return values, err
}

// finish sends messages and waits until they are done.
func (t *trial) finish(ctx context.Context, n int) error {
	all, err := t.sendMany(ctx, n)
	if err != nil {
		return err
	}
	return t.awaitEnds(ctx, all)
}

func (t *trial) awaitEnds(ctx context.Context, all map[string]hosts.Progress) error {
	left, err := t.Await(ctx, all, hasEnded)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d of %d messages are not done", len(left), len(all))
	}
	return err
}

// overloaded is the result of one run.
type overloaded struct {
	requests float64 // for all messages, without those of an idle app in that time
	copies   int
	outages  int
	recovery time.Duration
}

func overloadOnce(ctx context.Context, dir string, account azure.Account, n int, took time.Duration) (overloaded, error) {
	ctx, cancel := context.WithTimeout(ctx, overloadLimit)
	defer cancel()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return overloaded{}, err
	}
	t, s, err := behind(ctx, dir, account, 1)
	if err != nil {
		return overloaded{}, err
	}
	defer t.close()
	s.took.Store(int64(took))
	began := time.Now()
	busy, err := s.during(func() error { return t.finish(ctx, n) })
	lasted := time.Since(began)
	if err != nil {
		return overloaded{}, err
	}
	idle, err := s.during(func() error { return pause(ctx, overloadIdle) })
	if err != nil {
		return overloaded{}, err
	}
	out := overloaded{requests: busy - idle*float64(lasted)/float64(overloadIdle)}
	all, err := t.sendMany(ctx, n)
	if err = errors.Join(err, pause(ctx, 5*time.Second)); err != nil {
		return out, err
	}
	s.took.Store(0)
	since := time.Now()
	err = t.awaitEnds(ctx, all)
	out.recovery, out.copies = time.Since(since), s.mostCopies()
	log, readErr := os.ReadFile(filepath.Join(dir, "host-0.log"))
	out.outages = bytes.Count(log, []byte("storage does not answer"))
	return out, errors.Join(err, readErr)
}

// overloadDrain has two hosts drain many messages while they are killed and frozen.
func overloadDrain(ctx context.Context) (values []float64, err error) {
	err = withAccounts(ctx, 1, func(dir string, accounts []azure.Account) error {
		ctx, cancel := context.WithTimeout(ctx, overloadLimit)
		defer cancel()
		t, s, err := behind(ctx, dir, accounts[0], 2)
		if err != nil {
			return err
		}
		defer t.close()
		since := time.Now()
		s.took.Store(int64(3 * time.Millisecond))
		all, err := t.sendMany(ctx, overloadDrained)
		if err != nil {
			return err
		}
		if err := t.trouble(ctx); err != nil {
			return err
		}
		left, err := t.Await(ctx, all, hasEnded)
		if err != nil && ctx.Err() == nil {
			return err
		}
		known, err := t.Progress(context.WithoutCancel(ctx))
		lost := 0
		for id := range all {
			if _, ok := known[id]; !ok {
				lost++
			}
		}
		values = []float64{time.Since(since).Seconds(), float64(lost), float64(len(left)), float64(s.mostCopies())}
		return err
	})
	return values, err
}

// trouble freezes, kills and restarts the hosts, one after the other.
func (t *trial) trouble(ctx context.Context) error {
	for _, act := range []func() error{
		func() error { return t.hosts[0].Freeze() },
		func() error { return t.hosts[0].Thaw() },
		func() error { return t.hosts[1].KillHandler() },
		func() error { t.hosts[0].Kill(); return t.start(ctx) },
		func() error { return t.hosts[1].Freeze() },
		func() error { return t.hosts[1].Thaw() },
		func() error { return t.hosts[2].EndHandler() },
		func() error { t.hosts[1].Kill(); return t.start(ctx) },
	} {
		if err := errors.Join(pause(ctx, 8*time.Second), act()); err != nil {
			return err
		}
	}
	return nil
}
