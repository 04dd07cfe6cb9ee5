package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// overdueTakeover is the time after which a dead process should have been taken over, and a takeover should be
// finished: the sweep finds abandoned work after 5 min, and runs every 5 min. Clocks may differ by a minute.
const overdueTakeover = 12 * time.Minute

// examineNodes finds processes that died with work in progress that no process has taken over.
func (a *app) examineNodes(ctx context.Context, c *client.Client, p *patient) {
	const check = "nodes"
	page, err := a.pages(ctx, c, url.Values{}, 0, "limit", "nodes")
	if refusedWithStatus(err, http.StatusNotFound) {
		return // an app of a version without nodes
	}
	var left []string
	for _, item := range page.Items {
		var n client.NodeItem
		if err = decodeInto(item, &n); err != nil {
			break
		}
		if why := leftBehind(n, a.Now()); why != "" {
			left = append(left, fmt.Sprintf("%s %s", n.Node, why))
		}
	}
	switch {
	case err != nil:
		p.tried(check, err, "", "look at the app's log")
	case len(left) > 0:
		p.add(check, watch, "see whether orchestration-sweep-timer runs, and docs/operating.md", "%s", strings.Join(left, "; "))
	default:
		p.add(check, fine, "", "%d in a day, nobody left behind", len(page.Items))
	}
}

// leftBehind returns the problem of a process that others should take over; "" for none.
func leftBehind(n client.NodeItem, now time.Time) string {
	switch {
	case n.State == "alive" && n.InHand > 0 && now.Sub(n.Seen) > overdueTakeover:
		return fmt.Sprintf("has %d in hand and was not seen since %s", n.InHand, at(n.Seen))
	case n.State == "taken" && !n.Finished && now.Sub(n.TakenAt) > overdueTakeover:
		return fmt.Sprintf("is not taken over from completely: %s began at %s", n.TakenBy, at(n.TakenAt))
	default:
		return ""
	}
}
