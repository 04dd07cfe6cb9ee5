package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/internal/hosts"
)

// killFuller kills the host with the most work in progress, with its handler; the other one lives.
func killFuller(ctx context.Context, t *trial) (time.Time, hosts.Hand, error) {
	victim := t.fuller()
	since := time.Now()
	victim.Kill()
	hand, err := t.struck(ctx, victim)
	return since, hand, err
}

// killHandler kills the handler alone; its host lives, and restarts it. The work in progress is read before, since
// the next handler takes over immediately.
func killHandler(ctx context.Context, t *trial) (time.Time, hosts.Hand, error) {
	victim := t.hosts[0]
	hand, err := t.struck(ctx, victim)
	if err != nil {
		return time.Time{}, hand, err
	}
	since := time.Now()
	return since, hand, victim.KillHandler()
}

// endFuller stops the host with the most work in progress; the other one lives.
func endFuller(ctx context.Context, t *trial) (time.Time, hosts.Hand, error) {
	victim := t.fuller()
	hand, err := t.struck(ctx, victim)
	if err != nil {
		return time.Time{}, hand, err
	}
	since := time.Now()
	return since, hand, victim.Terminate()
}

// killAll kills all hosts, and starts one.
func killAll(ctx context.Context, t *trial) (time.Time, hosts.Hand, error) {
	since := time.Now()
	for _, h := range t.hosts {
		h.Kill()
	}
	hand, err := t.struck(ctx, t.hosts...)
	if err == nil {
		err = t.start(ctx)
	}
	return since, hand, err
}

// storageGone makes storage unavailable for a while; hosts and handlers live. Work received before counts, whether it
// had committed a round or not. A message with a lost answer has not begun.
func storageGone(ctx context.Context, t *trial) (time.Time, hosts.Hand, error) {
	hand, err := t.withoutStorage(ctx)
	for _, id := range hand.NotBegun {
		hand.Begun[id] = hosts.Progress{}
	}
	hand.NotBegun = nil
	err = errors.Join(err, pause(ctx, away), t.gate.Open())
	since := time.Now()
	hand.NotBegun, err = t.unreceived(ctx, hand, err)
	return since, hand, err
}

// storageAndHostsGone makes storage unavailable, and the hosts end because of it; they are restarted when it is back.
func storageAndHostsGone(ctx context.Context, t *trial) (time.Time, hosts.Hand, error) {
	hand, err := t.withoutStorage(ctx)
	if err = errors.Join(err, pause(ctx, hostsGiveUp)); err != nil {
		return time.Time{}, hand, err
	}
	for _, h := range t.hosts {
		h.Kill()
	}
	err = errors.Join(pause(ctx, away-hostsGiveUp), t.gate.Open())
	since := time.Now()
	unreceived, err := t.unreceived(ctx, hand, err)
	hand.NotBegun = append(hand.NotBegun, unreceived...)
	for range t.hosts {
		err = errors.Join(err, t.start(ctx))
	}
	return since, hand, err
}

// withoutStorage makes storage unavailable, and returns the work in progress.
func (t *trial) withoutStorage(ctx context.Context) (hosts.Hand, error) {
	t.endStream()
	if err := t.gate.Shut(); err != nil {
		return hosts.Hand{}, err
	}
	return t.struck(ctx, t.hosts...)
}

// unreceived returns the short ones that were sent, have committed nothing, and are not in progress.
func (t *trial) unreceived(ctx context.Context, hand hosts.Hand, before error) ([]string, error) {
	if before != nil {
		return nil, before
	}
	all, err := t.Progress(ctx)
	var left []string
	for _, id := range t.streamed {
		if _, held := hand.Begun[id]; !held && !all[id].Begun() && !slices.Contains(hand.NotBegun, id) {
			left = append(left, id)
		}
	}
	return left, err
}
