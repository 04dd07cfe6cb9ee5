package hosts

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

const (
	orchestrations = "orchestrations"
	statusRow      = "status"
	// pollEvery is how exact Await is.
	pollEvery = 200 * time.Millisecond
)

// Progress is how far an orchestration is.
type Progress struct {
	// Node is the process that committed its latest round; "" when it has not begun.
	Node string
	// Version counts its rounds.
	Version int64
	// Status is what it does, Waiting what it waits for.
	Status  orchestrator.Status
	Waiting string
}

// Begun says that it has committed something.
func (p Progress) Begun() bool { return p.Node != "" }

// Ended says that nothing follows.
func (p Progress) Ended() bool { return p.Status.Ended() }

// FurtherOn is an orchestration that has ended, or committed a round since.
func FurtherOn(before, now Progress) bool { return now.Ended() || now.Version > before.Version }

// Elsewhere is an orchestration that has ended, or to which another process has committed a round since.
func Elsewhere(before, now Progress) bool {
	return now.Ended() || now.Version > before.Version && now.Node != before.Node
}

// Progress reads how far all orchestrations are, by their ids. One that has not begun is not among them.
func (c *Cluster) Progress(ctx context.Context) (map[string]Progress, error) {
	all := map[string]Progress{}
	scan := tables.Scan{Row: statusRow, Select: []string{"LastExecutedBy", "StateVersion", "RuntimeStatus", "WaitingKind"}}
	for e, err := range tables.ScanAll(ctx, c.Tables, orchestrations, scan) {
		if err != nil {
			return nil, err
		}
		id, err := tables.UnescapeKey(e.Partition)
		if err != nil {
			return nil, err
		}
		all[id] = Progress{Node: e.String("LastExecutedBy"), Version: e.Int("StateVersion"), Status: orchestrator.Status(e.String("RuntimeStatus")),
			Waiting: e.String("WaitingKind")}
	}
	return all, nil
}

// Hand is what hosts had in hand when something broke.
type Hand struct {
	// Begun are the orchestrations that had committed something and not ended, and how far they were.
	Begun map[string]Progress
	// NotBegun are those whose message was received, and which had committed nothing.
	NotBegun []string
}

// InHand reads what these hosts have in hand. Of a host that is dead, it is what it had when it died.
func (c *Cluster) InHand(ctx context.Context, all ...*Host) (Hand, error) {
	progress, err := c.Progress(ctx)
	hand := Hand{Begun: map[string]Progress{}}
	for _, h := range all {
		for _, id := range h.Held() {
			switch p := progress[id]; {
			case !p.Begun():
				hand.NotBegun = append(hand.NotBegun, id)
			case !p.Ended():
				hand.Begun[id] = p
			}
		}
	}
	return hand, err
}

// Await waits until all that was in hand has gone on, and gives what has not when ctx ends. What it is to have gone on, on says.
func (c *Cluster) Await(ctx context.Context, begun map[string]Progress, on func(before, now Progress) bool) (left []string, err error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		now, err := c.Progress(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		left = left[:0]
		for id, before := range begun {
			if !on(before, now[id]) {
				left = append(left, id)
			}
		}
		if len(left) == 0 {
			return nil, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return left, ctx.Err()
			}
			return left, nil
		}
	}
}
