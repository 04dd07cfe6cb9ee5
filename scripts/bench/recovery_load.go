package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/hosts"
)

const (
	// streamEvery is the interval of short orchestrations next to the long ones.
	streamEvery = 250 * time.Millisecond
	// settled is the time that the hosts work before the breakage.
	settled = 3 * time.Second
	// fillTimeout bounds the wait until all work is in progress.
	fillTimeout = time.Minute
)

// fill sends the work, waits until all of it is in progress, and starts a stream of short ones.
func (t *trial) fill(ctx context.Context, work []load) error {
	var all, wait []string
	for _, l := range work {
		for range l.count {
			t.sent++
			id := fmt.Sprintf("long-%d", t.sent)
			if err := t.Send(ctx, id, l.work); err != nil {
				return err
			}
			if all = append(all, id); l.work.Event {
				wait = append(wait, id)
			}
		}
	}
	if err := t.underWay(ctx, all, func(p hosts.Progress) bool { return p.Begun() }); err != nil {
		return err
	}
	for _, id := range wait {
		if err := t.Raise(ctx, id); err != nil {
			return err
		}
	}
	if err := t.underWay(ctx, wait, func(p hosts.Progress) bool { return p.Waiting != "Event" }); err != nil {
		return err
	}
	streaming, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	t.endStream = func() { cancel(); <-ended }
	go func() { defer close(ended); t.stream(streaming) }()
	return pause(ctx, settled)
}

// underWay waits until all of these satisfy as.
func (t *trial) underWay(ctx context.Context, ids []string, as func(hosts.Progress) bool) error {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	begun := map[string]hosts.Progress{}
	for _, id := range ids {
		begun[hosts.ID(id)] = hosts.Progress{}
	}
	left, err := t.Await(ctx, begun, func(_, now hosts.Progress) bool { return now.Begun() && as(now) })
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d of %d orchestrations are not under way within %v", len(left), len(ids), fillTimeout)
	}
	return err
}

// stream sends short orchestrations until ctx ends.
func (t *trial) stream(ctx context.Context) {
	for n := 0; pause(ctx, streamEvery) == nil; n++ {
		id := fmt.Sprintf("short-%d", n)
		if err := t.Send(ctx, id, hosts.Work{Calls: 2, Lasts: 500 * time.Millisecond}); err == nil { // on an error, the next one is enough
			t.streamed = append(t.streamed, hosts.ID(id))
		}
	}
}

// fuller returns the host with the most work in progress.
func (t *trial) fuller() *hosts.Host {
	most := t.hosts[0]
	for _, h := range t.hosts[1:] {
		if len(h.Held()) > len(most.Held()) {
			most = h
		}
	}
	return most
}

// struck returns the work in progress of the broken hosts. Without any, it is an error: nothing would be measured.
func (t *trial) struck(ctx context.Context, all ...*hosts.Host) (hosts.Hand, error) {
	hand, err := t.InHand(ctx, all...)
	if err == nil && len(hand.Begun) == 0 {
		err = errors.New("what broke had nothing in hand")
	}
	return hand, err
}
