package console

import (
	"context"
	"net/url"
	"strings"

	"github.com/vibedata/roundhouse/handler/access"
)

// homePollersLimit is how many pollers the home page looks at: the state of each is read.
const homePollersLimit = "20"

// pollerTroubles are the pollers that something is wrong with, or that read nothing because their database holds rows back.
type pollerTroubles struct {
	Items []pollerItem
	// More says that there are pollers that were not looked at.
	More bool
}

func (l pollerTroubles) empty() bool { return len(l.Items) == 0 }

// troubled says whether a person should look at a poller. Rows that are held back are known to the process that answers only.
func (p pollerItem) troubled() bool {
	switch p.Condition {
	case "damaged", "stopped", "failing":
		return true
	}
	return p.Problem != "" || p.HeldBack() != ""
}

// HeldBack says why rows are not read yet, "" when none are known to be.
func (p pollerItem) HeldBack() Text {
	if p.Process == nil {
		return ""
	}
	return p.Process.HeldBack
}

// askPollers asks which pollers something is wrong with. That, and not where they are, is what makes news of the page.
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
