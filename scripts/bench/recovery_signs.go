package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/hosts"
)

// minutes is the number of minutes in which requests are counted: the first has the start of the work, the second the
// row of each minute.
const minutes = 2

// signsOfLife counts the requests of a node's heartbeat, in the minute with the most.
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

// countSigns counts the heartbeat requests of a working handler, in the minute with the most.
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
	var most int64
	for range minutes {
		before := n.Load()
		if err := pause(ctx, time.Minute); err != nil {
			return 0, err
		}
		most = max(most, n.Load()-before)
	}
	return most, nil
}

// isSign reports whether a request is for the message or the row of a node. This work sends nothing else to the
// queue.
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
