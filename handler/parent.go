package handler

import (
	"context"
	"errors"
	"time"
)

// errParentGone means that the process which started this one has ended.
var errParentGone = errors.New("the process that started this one has ended")

// parentPoll is the polling interval of the parent; one system call without cost.
const parentPoll = time.Second

// watchParent returns errParentGone once getppid no longer returns parent. When ctx ends it returns the reason.
//
// The host never asks the handler to stop; when the host is killed, the handler would stay behind, holding its port
// and working on messages that storage has long redelivered to another process. The kernel's own means,
// PR_SET_PDEATHSIG, does not work: it fires when the *thread* that started the child ends, and the .NET host may
// start the handler from a pool thread. A parent of 1 does not mean that the host is gone: in a container the host
// itself is process 1.
func watchParent(ctx context.Context, parent int, getppid func() int) error {
	tick := time.NewTicker(parentPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if getppid() != parent {
				return errParentGone
			}
		}
	}
}
