package settings

import (
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// Node configures how the processes of the app detect that one of them has died.
type Node struct {
	// Interval is the interval of the heartbeats of a working process (ROUNDHOUSE_NODE_INTERVAL, a Go duration; 10 s
	// unless set).
	Interval time.Duration
	// Death is the age of the last heartbeat at which others take over (ROUNDHOUSE_NODE_DEATH, a Go duration of one
	// and a half intervals or more; 15 s unless set).
	Death time.Duration
}

// leastInterval keeps heartbeats from costing more than the work.
const leastInterval = time.Second

func nodeFrom(r *Reader) (Node, error) {
	var n Node
	var err error
	if n.Interval, err = nodeSetting(r, "ROUNDHOUSE_NODE_INTERVAL", nodes.DefaultInterval, leastInterval); err != nil {
		return n, err
	}
	n.Death, err = nodeSetting(r, "ROUNDHOUSE_NODE_DEATH", max(nodes.DefaultDeath, n.Interval*3/2), n.Interval*3/2)
	return n, err
}

func nodeSetting(r *Reader, name string, usual, least time.Duration) (time.Duration, error) {
	text := r.Text(name)
	if text == "" {
		return usual, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > time.Hour {
		return 0, fmt.Errorf("%s is %q: set a Go duration of %v to an hour, such as %v", name, text, least, usual)
	}
	return d, nil
}
