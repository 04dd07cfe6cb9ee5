package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/hosts"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

const (
	// many is the number of orchestrations in progress of the node that dies, and manyLimit bounds the wait for them.
	many      = 1000
	manyLimit = 5 * time.Minute
	// survivors is the number of remaining nodes.
	survivors = 2
)

// takeoverOfMany measures the time until all orchestrations of one node continue, if these are many. Each is in a
// timer, which is due when they are taken over, and has an activity of a second left.
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

// awaitTaken waits until a node has been taken over, and returns the number of its orchestrations.
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
