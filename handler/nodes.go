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

// wireNode makes this process a node of the app. Every host listens to the queue of delayed messages. Heartbeats are
// sent in clear: they contain no payloads, and must work without the vault, too.
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

// takeOver continues the work of a dead process, within the time of an invocation.
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

// builtFrom returns the version of the program: that of its module, or else the commit.
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
