package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/hosts"
)

// result is the result of one run. took is the time until the last one in progress had continued.
type result struct {
	took                                 time.Duration
	inHand, late, notBegun, notBegunLate int
}

// trial is one run: hosts over an account of their own, behind a gate.
type trial struct {
	*hosts.Cluster
	gate  *hosts.Gate
	hosts []*hosts.Host
	sent  int // long ones
	// endStream ends the stream of short ones; streamed are its orchestrations, to be read after that.
	endStream func()
	streamed  []string
}

// repeat runs all runs of a breakage, some in parallel.
func (b breakage) repeat(ctx context.Context) ([]result, error) {
	results := make([]result, recoveryRuns)
	err := withAccounts(ctx, recoveryRuns, func(dir string, accounts []azure.Account) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(recoveryAtOnce)
		for i, account := range accounts {
			group.Go(func() error {
				var err error
				phase := signEvery * time.Duration(i) / recoveryRuns
				if results[i], err = b.run(ctx, filepath.Join(dir, strconv.Itoa(i)), account, phase); err != nil {
					return fmt.Errorf("run %d of %s: %w", i, b.name, err)
				}
				return nil
			})
		}
		return group.Wait()
	})
	return results, err
}

// withAccounts runs work with so many accounts of an Azurite, and with a folder, which is kept when the work fails.
func withAccounts(ctx context.Context, n int, work func(dir string, accounts []azure.Account) error) (err error) {
	dir, err := os.MkdirTemp("", "roundhouse-recovery-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w (the logs of hosts and handlers are in %s)", err, dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("recovery%d", i))
	}
	starting, cancel := context.WithTimeout(ctx, azuriteStart)
	defer cancel()
	server, err := azurite.Start(starting, azurite.Config{Accounts: names})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	var accounts []azure.Account
	for _, name := range names {
		accounts = append(accounts, server.AccountNamed(name))
	}
	return work(dir, accounts)
}

// open starts so many hosts over an account.
func open(ctx context.Context, dir string, account azure.Account, n int) (t *trial, err error) {
	t = &trial{endStream: func() {}}
	if t.gate, err = hosts.NewGate(account, nil); err != nil {
		return nil, err
	}
	through := t.gate.Account(account.Name)
	if t.Cluster, err = hosts.New(hosts.Config{Dir: dir, Account: account, Host: through, Handler: through}); err != nil {
		return nil, errors.Join(err, t.gate.Close())
	}
	for range n {
		if err := t.start(ctx); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

func (t *trial) start(ctx context.Context) error {
	h, err := t.Start(ctx)
	if err == nil {
		t.hosts = append(t.hosts, h)
	}
	return err
}

func (t *trial) close() {
	t.endStream()
	t.Close()
	_ = t.gate.Close() // no client is left
}

// run breaks hosts once.
func (b breakage) run(ctx context.Context, dir string, account azure.Account, phase time.Duration) (result, error) {
	t, err := open(ctx, dir, account, b.hosts)
	if err != nil {
		return result{}, err
	}
	defer t.close()
	if err := t.fill(ctx, b.work); err != nil {
		return result{}, err
	}
	if err := pause(ctx, phase); err != nil {
		return result{}, err
	}
	since, hand, err := b.strike(ctx, t)
	if err != nil {
		return result{}, err
	}
	limited, cancel := context.WithDeadline(ctx, since.Add(recoveryLimit))
	defer cancel()
	left, err := t.Await(limited, hand.Begun, b.on)
	r := result{took: min(time.Since(since), recoveryLimit), inHand: len(hand.Begun), late: len(left), notBegun: len(hand.NotBegun)}
	if err != nil || len(hand.NotBegun) == 0 {
		return r, err
	}
	begun := map[string]hosts.Progress{}
	for _, id := range hand.NotBegun {
		begun[id] = hosts.Progress{}
	}
	left, err = t.Await(limited, begun, hosts.FurtherOn)
	r.notBegunLate = len(left)
	return r, err
}

// pause waits, unless the command is interrupted.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
