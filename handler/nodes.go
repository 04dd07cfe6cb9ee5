package handler

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// wireNode makes this process's place among those of the app. The queue of what is due later is one that every host listens to.
// Signs of life are sent in clear: they hold no payloads, and have to be there without the vault, too.
func (p *parts) wireNode() (err error) {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the name of this machine: %w", err)
	}
	p.node, err = nodes.New(nodes.Config{Tables: p.platform.Tables, Queues: p.sealed.queues, Queue: orchestrator.DefaultScheduleQueue,
		Host: fmt.Sprintf("%s/%d", host, os.Getppid()), Version: builtFrom(), Interval: p.settings.Node.Interval, Death: p.settings.Node.Death,
		TakeOver: p.takeOver, Log: p.log})
	return err
}

// takeOver goes on with what a dead process had in hand, within the time of an invocation.
func (p *parts) takeOver(ctx context.Context, lost nodes.Lost, begun func(orchestrations int)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.settings.Budget, trigger.ErrBudget)
	defer cancel()
	l := orchestrator.Lost{Node: lost.Node, Orchestrations: lost.Hand.Orchestrations, Since: lost.Hand.At, Begun: lost.Begun, KeepEnds: lost.HostLives}
	if lost.Hand.More {
		l.Since = lost.Hand.Since
	}
	var released sync.WaitGroup
	defer released.Wait()
	released.Go(func() { p.release(ctx, lost) })
	return p.runtime.TakeOver(ctx, l, begun)
}

// builtFrom says which version of the code the program is: that of its module, or else the commit.
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}
