package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

const (
	// many is how many orchestrations the node has in hand that dies with so many, and manyLimit how long is waited for them.
	many      = 1000
	manyLimit = 5 * time.Minute
	// survivors are those that are left then.
	survivors = 2
	// watched is for how long requests are counted.
	watched = time.Minute
)

// takeoverOfMany measures how long it takes until all go on that one node had in hand, when these are many. Each is in a timer, which
// is due when they are taken over, and has an activity of a second left.
func takeoverOfMany() scenario {
	metrics := []metric{
		{"recovery/thousand/taken_over_s", "s", fmt.Sprintf("goal 60: until a survivor has taken over %d children that a killed host had in hand", many)},
		{"recovery/thousand/s", "s", fmt.Sprintf("until the last one went on at %d survivors, each of which has no more in hand than its host allows", survivors)},
		{"recovery/thousand/in_hand", "orchestrations", "had not ended when the host was killed"},
		{"recovery/thousand/taken_over", "orchestrations", "were taken over, by the row of the node"},
		{"recovery/thousand/late", "orchestrations", fmt.Sprintf("of these, did not go on within %v", manyLimit)},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) (values []float64, err error) {
		err = withAccounts(ctx, 1, func(dir string, accounts []azure.Account) error {
			t, err := open(ctx, dir, accounts[0], 1)
			if err != nil {
				return err
			}
			defer t.close()
			values, err = t.killWithMany(ctx)
			return err
		})
		return values, err
	}}
}

func (t *trial) killWithMany(ctx context.Context) ([]float64, error) {
	err := t.Send(ctx, "parent", hosts.Work{Children: many, Naps: 1, Nap: 29 * time.Second, Calls: 1, Lasts: time.Second})
	if err == nil {
		err = t.awaitBegun(ctx, 1)
	}
	for range survivors {
		err = errors.Join(err, t.start(ctx))
	}
	if err == nil {
		err = t.awaitBegun(ctx, many)
	}
	if err != nil {
		return nil, err
	}
	since := time.Now()
	t.hosts[0].Kill()
	inHand, err := t.Progress(ctx)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(inHand, func(_ string, p hosts.Progress) bool { return p.Ended() })
	ctx, cancel := context.WithDeadline(ctx, since.Add(manyLimit))
	defer cancel()
	var group errgroup.Group
	var took, last time.Duration
	var takenOver, late int
	group.Go(func() (err error) {
		takenOver, err = t.awaitTaken(ctx)
		took = min(time.Since(since), manyLimit)
		return err
	})
	group.Go(func() error {
		left, err := t.Await(ctx, inHand, hosts.FurtherOn)
		last, late = min(time.Since(since), manyLimit), len(left)
		return err
	})
	err = group.Wait()
	return []float64{took.Seconds(), last.Seconds(), float64(len(inHand)), float64(takenOver), float64(late)}, err
}

// awaitTaken waits until a node has been taken over from, and gives how many orchestrations that were.
func (t *trial) awaitTaken(ctx context.Context) (int, error) {
	for {
		all, err := nodes.List(ctx, t.Tables, "")
		for _, n := range all {
			if n.State == nodes.StateTaken && n.Finished {
				return n.TakenOver, nil
			}
		}
		if err != nil || pause(ctx, streamEvery) != nil {
			return 0, fmt.Errorf("nobody has finished a takeover: %w", errors.Join(err, ctx.Err()))
		}
	}
}

// awaitBegun waits until so many have begun.
func (t *trial) awaitBegun(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	for {
		all, err := t.Progress(ctx)
		if err != nil || len(all) >= n {
			return err
		}
		if err := pause(ctx, streamEvery); err != nil {
			return fmt.Errorf("%d of %d orchestrations have begun within %v", len(all), n, fillTimeout)
		}
	}
}

// signsOfLife counts the requests with which a node says that it lives, in a minute.
func signsOfLife() scenario {
	metrics := []metric{
		{"recovery/requests/idle", "requests/min", "goal 0"},
		{"recovery/requests/busy", "requests/min", "goal 8 or less"},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		values := make([]float64, len(metrics))
		err := withAccounts(ctx, len(metrics), func(dir string, accounts []azure.Account) error {
			group, ctx := errgroup.WithContext(ctx)
			for i, work := range [][]load{nil, {{10, hosts.Work{Naps: 10, Nap: 20 * time.Second}}}} {
				group.Go(func() error {
					n, err := countSigns(ctx, filepath.Join(dir, fmt.Sprint(i)), accounts[i], work)
					values[i] = float64(n)
					return err
				})
			}
			return group.Wait()
		})
		return values, err
	}}
}

// countSigns counts the requests of a handler about its sign of life while it works.
func countSigns(ctx context.Context, dir string, account azure.Account, work []load) (int64, error) {
	var n atomic.Int64
	gate, err := hosts.NewGate(account, func(r *http.Request) {
		if isSign(r) {
			n.Add(1)
		}
	})
	if err != nil {
		return 0, err
	}
	defer gate.Close()
	c, err := hosts.New(hosts.Config{Dir: dir, Account: account, Handler: gate.Account(account.Name)})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Start(ctx); err != nil {
		return 0, err
	}
	for i, l := range work {
		for j := range l.count {
			if err := c.Send(ctx, fmt.Sprintf("busy-%d-%d", i, j), l.work); err != nil {
				return 0, err
			}
		}
	}
	if err := pause(ctx, settled); err != nil {
		return 0, err
	}
	before := n.Load()
	err = pause(ctx, watched)
	return n.Load() - before, err
}

// isSign says whether a request is about the message or the row of a node. Work of this kind puts nothing else into the queue.
func isSign(r *http.Request) bool {
	switch path := r.URL.Path; {
	case strings.Contains(path, "/orchestration-schedules/messages"):
		return true
	case strings.Contains(path, "/hostLocks("):
		return strings.Contains(path, "'nodes'")
	case r.Method == http.MethodPost && (strings.HasSuffix(path, "/hostLocks") || strings.HasSuffix(path, "/$batch")):
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		return err == nil && bytes.Contains(body, []byte("nodes")) && bytes.Contains(append(body, path...), []byte("hostLocks"))
	default:
		return false
	}
}
