package handler

import (
	"context"
	"errors"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/poller"
)

// release releases the other claims of a dead process: claimed events, locks of jobs, and the leases of pollers. All
// of them expire by themselves within minutes, so a failed release is not repeated.
func (p *parts) release(ctx context.Context, lost nodes.Lost) {
	events, err := p.events.dispatcher.Release(ctx, lost.Node, lost.HostLives)
	locks, lockErr := p.locks.ReleaseNode(ctx, lost.Node)
	pollers, pollerErr := p.pollers.release(ctx, lost.Node)
	if err := errors.Join(err, lockErr, pollerErr); err != nil {
		p.log.WarnContext(ctx, "not all that a node held could be released: what is left ends by itself", "node", lost.Node, "error", err.Error())
	}
	if events+locks+pollers > 0 {
		p.log.InfoContext(ctx, "what a node held is released", "node", lost.Node, "events", events, "locks", locks, "pollers", pollers)
	}
}

// release frees the leases of a node.
func (p *pollers) release(ctx context.Context, node string) (released int, err error) {
	var errs []error
	for _, j := range p.jobs {
		did, err := poller.Operator{Store: p.stores[j.setting.State]}.ReleaseNode(ctx, j.setting.Name, node)
		errs = append(errs, err)
		if did {
			released++
		}
	}
	return released, errors.Join(errs...)
}

// listNodes lists the processes of the app.
func (p *parts) listNodes(ctx context.Context) ([]nodes.Info, error) {
	return nodes.List(ctx, p.platform.Tables, "")
}
