package engine

import (
	"context"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// Nodes is what a pipeline needs of this process's place among those of the app. *nodes.Node is one.
type Nodes interface {
	// Receive takes a message of the schedule queue that is a sign of life. handled is false for other messages.
	Receive(ctx context.Context, message []byte) (handled bool, err error)
	// HoldMessage takes a message in hand until release is called.
	HoldMessage(m nodes.Message) (release func())
}

// receiveSign takes a message that is the sign of life of a process.
func (p *Pipeline) receiveSign(ctx context.Context, message []byte) (handled bool, err error) {
	if p.config.Nodes == nil {
		return false, nil
	}
	return p.config.Nodes.Receive(ctx, message)
}

// holdMessage takes a delivery in hand whose message nothing else tells of.
func (p *Pipeline) holdMessage(d Delivery) (release func()) {
	if p.config.Nodes == nil || d.PopReceipt == "" {
		return func() {}
	}
	return p.config.Nodes.HoldMessage(nodes.Message{Queue: d.Queue, ID: d.ID, PopReceipt: d.PopReceipt})
}
