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
	// pollEvery is the precision of Await.
	pollEvery = 200 * time.Millisecond
)

// Progress is the progress of an orchestration.
type Progress struct {
	// Node is the process that committed its latest round; "" before the first one.
	Node string
	// Version counts its rounds.
	Version int64
	// Status is its status, Waiting its waits.
	Status  orchestrator.Status
	Waiting string
}

// Begun reports whether it has committed a round.
func (p Progress) Begun() bool { return p.Node != "" }

// Ended reports whether it has ended.
func (p Progress) Ended() bool { return p.Status.Ended() }

// FurtherOn reports whether an orchestration has ended, or committed a round since.
func FurtherOn(before, now Progress) bool { return now.Ended() || now.Version > before.Version }

// Elsewhere reports whether an orchestration has ended, or another process has committed a round since.
func Elsewhere(before, now Progress) bool {
	return now.Ended() || now.Version > before.Version && now.Node != before.Node
}

// Progress returns the progress of all orchestrations, by their ids, without those that have not begun.
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

// Hand is the work in flight on hosts when a failure occurred.
type Hand struct {
	// Begun are the unfinished orchestrations with a committed round, and their progress.
	Begun map[string]Progress
	// NotBegun are those whose message was received, without a committed round.
	NotBegun []string
}

// InHand returns the work in flight on these hosts. For a dead host, it is that at its death.
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

// Await waits until all begun work has continued as on reports, and returns the rest when ctx ends.
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
