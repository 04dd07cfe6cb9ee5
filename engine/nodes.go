package engine

import (
	"context"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// Nodes is the pipeline's view of this process among those of the app. *nodes.Node implements it.
type Nodes interface {
	// Receive handles a heartbeat from the schedule queue. handled is false for other messages.
	Receive(ctx context.Context, message []byte) (handled bool, err error)
	// HoldMessage registers a message as in progress until release is called.
	HoldMessage(m nodes.Message) (release func())
}

// receiveSign handles a message that is the heartbeat of a process.
func (p *Pipeline) receiveSign(ctx context.Context, message []byte) (handled bool, err error) {
	if p.config.Nodes == nil {
		return false, nil
	}
	return p.config.Nodes.Receive(ctx, message)
}

// holdMessage registers a delivery as in progress if nothing else refers to its message.
func (p *Pipeline) holdMessage(d Delivery) (release func()) {
	if p.config.Nodes == nil || d.PopReceipt == "" {
		return func() {}
	}
	return p.config.Nodes.HoldMessage(nodes.Message{Queue: d.Queue, ID: d.ID, PopReceipt: d.PopReceipt})
}
