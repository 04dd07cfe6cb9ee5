package poller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
)

// Node is the node of an app that a Runner works on, when other nodes can take it over. Implementations are safe for
// concurrent use.
type Node interface {
	// Name returns the node's current name, which changes after a takeover.
	Name() string
	// Hold reports work in flight until release is called. The work has no orchestration: the name is "".
	Hold(orchestration string) (release func())
}

// process is a node that is never taken over.
type process struct{}

func (process) Name() string {
	host, _ := os.Hostname() // without a host name, the random part of an owner has to do
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

func (process) Hold(string) func() { return func() {} }

// ownerOf returns a function for the name of a Runner in its leases: the node, and a part that distinguishes it from
// other runners there.
func ownerOf(c RunnerConfig) func() string {
	if c.Owner != "" {
		return func() string { return c.Owner }
	}
	random := uuid.NewString()[:8]
	return func() string { return c.Node.Name() + "/" + random }
}

// ReleaseNode frees the lease of a poller if it is that of a lost node, and reports whether it was. A node that lives
// on is fenced: it cannot commit, and its batch is delivered again. ReleaseNode may be repeated.
func (o Operator) ReleaseNode(ctx context.Context, poller, node string) (bool, error) {
	const what = "release the lease of a lost node"
	if node == "" {
		return false, wrap(poller, what, fmt.Errorf("%w: the node has no name", ErrInvalid))
	}
	change, err := o.write(ctx, poller, what, ChangeOptions{Force: true}, func(doc *Document, _ State) (*Document, error) {
		if doc == nil || !strings.HasPrefix(doc.Lease.Owner, node+"/") {
			return nil, errNotOwner
		}
		return doc.clone(), nil
	})
	if errors.Is(err, errNotOwner) {
		return false, nil
	}
	return change.Applied, err
}

// errNotOwner means that the node does not have the lease.
var errNotOwner = errors.New("the lease is not that of the node")
