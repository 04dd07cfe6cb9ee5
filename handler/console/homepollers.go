package console

import (
	"context"
	"net/url"
	"strings"

	"github.com/vibedata/roundhouse/handler/access"
)

// homePollersLimit is the number of pollers that the home page checks: the state of each is read.
const homePollersLimit = "20"

// pollerTroubles are the pollers with problems, or whose database holds all rows back.
type pollerTroubles struct {
	Items []pollerItem
	// More means that some pollers were not checked.
	More bool
}

func (l pollerTroubles) empty() bool { return len(l.Items) == 0 }

// troubled reports whether a poller needs attention. Only the answering process knows its held back rows.
func (p pollerItem) troubled() bool {
	switch p.Condition {
	case "damaged", "stopped", "failing":
		return true
	}
	return p.Problem != "" || p.HeldBack() != ""
}

// HeldBack returns the reason why rows are not read yet, "" when none is known.
func (p pollerItem) HeldBack() Text {
	if p.Process == nil {
		return ""
	}
	return p.Process.HeldBack
}

// askPollers requests the pollers with problems. Their list, not their positions, is the news of the page.
func askPollers(ctx context.Context, v *visit) part[pollerTroubles] {
	return fill(ctx, v, access.PollersRead, func(ctx context.Context, v *visit) (out pollerTroubles, err error) {
		var list struct {
			Items []pollerItem `json:"items"`
			Token string       `json:"continuationToken"`
		}
		err = v.api.unnoted().get(ctx, "/api/pollers", url.Values{"limit": {homePollersLimit}}, &list)
		var news strings.Builder
		for _, p := range list.Items {
			if p.troubled() {
				out.Items = append(out.Items, p)
				news.WriteString(string(p.Name) + "\n" + p.Condition + "\n")
			}
		}
		out.More = list.Token != ""
		if err != nil {
			news.WriteString("not answered")
		}
		v.seen.noteText("/api/pollers", news.String())
		return out, err
	})
}
