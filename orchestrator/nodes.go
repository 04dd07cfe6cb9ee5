package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// Nodes reports this process as alive to the other processes, which continue its work when it dies. *nodes.Node
// implements it.
type Nodes interface {
	// Name returns the name of this process. It changes after other processes have taken over from it.
	Name() string
	// Hold marks an orchestration as in progress until release is called.
	Hold(orchestration string) (release func())
	// Confirm ensures that other processes see the process of that name as alive. The error is nodes.ErrFenced, or one
	// of storage.
	Confirm(ctx context.Context, name string) error
}

// Hold marks an orchestration as in progress until release is called: if this process dies before, other processes
// check the orchestration for work. Callers that drive orchestrations with Run should hold them until the work after
// their ends is done, too; the runtime itself holds them while it drives them.
func (r *Runtime) Hold(orchestration string) (release func()) {
	if r.config.Nodes == nil {
		return func() {}
	}
	return r.config.Nodes.Hold(orchestration)
}

// confirm prevents a commit by a process that the others consider dead.
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

// responsibleNode returns the node that is responsible for the open calls after the next round: this one, unless it
// leaves calls to the node that made them.
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
