package outbox

import (
	"context"
)

// Nodes provides the node name of this process. A node that shows no sign of life while it has work in flight is taken
// over, and gets another name when it notices that. Implementations are safe for concurrent use.
type Nodes interface {
	// Name returns the node's current name.
	Name() string
	// Hold reports work in flight until release is called. The work has no orchestration: the name is "".
	Hold(orchestration string) (release func())
	// Confirm returns an error unless the node of this name still works: no other node has taken it over.
	Confirm(ctx context.Context, name string) error
}

// fixedNode is a node that is never taken over.
type fixedNode string

func (n fixedNode) Name() string                          { return string(n) }
func (n fixedNode) Hold(string) func()                    { return func() {} }
func (n fixedNode) Confirm(context.Context, string) error { return nil }

// node returns the name of this process in claims and attempt logs.
func (o *Outbox) node() string { return nodeName(o.nodes.Name()) }

func nodeName(name string) string { return clip(name, MaxIDLength) }
