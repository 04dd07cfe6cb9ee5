package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// Nodes keeps this process alive to the others, which go on with what it has in hand when it dies. *nodes.Node is one.
type Nodes interface {
	// Name is the name of this process. It gets another one after others have taken over from it.
	Name() string
	// Hold takes an orchestration in hand until release is called.
	Hold(orchestration string) (release func())
	// Confirm says that the process of that name is alive to the others. The error is nodes.ErrFenced, or one of storage.
	Confirm(ctx context.Context, name string) error
}

// Hold takes an orchestration in hand until release is called: should this process die before, others look what there is to do
// for it. Whoever drives orchestrations with Run holds them until what follows their ends is done, too; the runtime itself holds
// them while it drives them.
func (r *Runtime) Hold(orchestration string) (release func()) {
	if r.config.Nodes == nil {
		return func() {}
	}
	return r.config.Nodes.Hold(orchestration)
}

// confirm keeps a process from committing that the others take for dead.
func (d *driver) confirm(ctx context.Context) error {
	if d.rt.config.Nodes == nil {
		return nil
	}
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	err := d.rt.config.Nodes.Confirm(ctx, d.node)
	if errors.Is(err, nodes.ErrFenced) {
		return fmt.Errorf("orchestration %s: %w: %w", d.start.ID, ErrElsewhere, err)
	}
	if err != nil {
		return fmt.Errorf("orchestration %s: %w", d.start.ID, err)
	}
	return nil
}

// responsibleNode is the node that is responsible for the open calls after the next round: this one, unless it leaves calls to the
// one that made them.
func (d *driver) responsibleNode() string {
	if d.responsible == "" || d.responsible == d.node {
		return d.node
	}
	for _, t := range d.execution.tasks {
		if t.foreign && t.open() && !t.kind.outside() {
			return d.responsible
		}
	}
	return d.node
}
