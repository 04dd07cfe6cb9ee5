package outbox

import (
	"context"
)

// Nodes says as which node this process works. A node of which no sign of life is seen while it has work in hand is taken
// over from, and gets another name when it finds that out. Implementations are safe for concurrent use.
type Nodes interface {
	// Name is the node's name as of now.
	Name() string
	// Hold says that work is in hand until release is called. The work has no orchestration: the name is "".
	Hold(orchestration string) (release func())
	// Confirm returns an error unless the node of this name still works: nobody has taken over from it.
	Confirm(ctx context.Context, name string) error
}

// fixedNode is a node that nobody takes over from.
type fixedNode string

func (n fixedNode) Name() string                          { return string(n) }
func (n fixedNode) Hold(string) func()                    { return func() {} }
func (n fixedNode) Confirm(context.Context, string) error { return nil }

// node is the name of this process in claims and attempt logs.
func (o *Outbox) node() string { return nodeName(o.nodes.Name()) }

func nodeName(name string) string { return clip(name, MaxIDLength) }
