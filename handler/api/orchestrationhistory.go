package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/vibedata/roundhouse/handler/api/timeline"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// openHistoryPath accepts a downloaded history, and MaxHistory bounds it in bytes.
	openHistoryPath = "/api/orchestrations/history/open"
	// MaxHistory bounds an opened history, in bytes, and maxExport a downloaded one: every downloaded history can be
	// opened.
	MaxHistory = 10 << 20
	maxExport  = 8 << 20
	// maxOpened bounds the entries of rounds and the timeline items in the answer, and maxOpenedPayload the total
	// payloads of the entries, in bytes.
	maxOpened        = 2000
	maxOpenedPayload = 2 << 20
)

// openedHistory is an opened history, in the form of an orchestration's resources. Nothing of it is stored.
type openedHistory struct {
	Orchestration orchestrationDetail `json:"orchestration"`
	Rounds        []roundItem         `json:"rounds"`
	Timeline      []timelineItem      `json:"timeline"`
	// EntriesLeft and ItemsLeft are the numbers of omitted entries of rounds and timeline items.
	EntriesLeft int `json:"entriesLeft,omitempty"`
	ItemsLeft   int `json:"itemsLeft,omitempty"`
}

// getOrchestrationHistory returns the history of an orchestration as a file, without secrets.
func (a *api) getOrchestrationHistory(ctx context.Context, r *request) (reply, error) {
	id, err := orchestrationID(r)
	if err != nil {
		return reply{}, err
	}
	if err := newQuery(r.http.URL.RawQuery).err(); err != nil {
		return reply{}, err
	}
	s, err := a.runtime.Status(ctx, id)
	if err == nil {
		err = r.mayHave(s)
	}
	if err != nil {
		return reply{}, err
	}
	text, err := a.runtime.ExportRedacted(ctx, id)
	if err != nil {
		return reply{}, err
	}
	if len(text) > maxExport {
		return reply{}, &failure{status: http.StatusUnprocessableEntity, problem: problem{Code: codeHistoryTooLarge,
			Message: fmt.Sprintf("The history has %d bytes, and %d can be downloaded. Read its rounds a page at a time, or export it with Runtime.Export (docs/versions.md).", len(text), maxExport)}}
	}
	return reply{document: &document{"application/json", text}, header: map[string]string{"Content-Disposition": `attachment; filename="` + historyFile(id) + `"`}}, nil
}

// historyFile returns the name of a file for the history of an orchestration.
func historyFile(id string) string {
	const longest = 100
	name := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			return c
		default:
			return '_'
		}
	}, id)
	return "history-" + name[:min(len(name), longest)] + ".json"
}

// openHistory shows a downloaded history, of this app or another: it uses only the body.
func (a *api) openHistory(_ context.Context, r *request) (reply, error) {
	text, err := r.text()
	if err == nil {
		err = payload.CheckHistory(text)
	}
	if err != nil {
		return reply{}, err
	}
	h, err := orchestrator.OpenHistory(text)
	switch {
	case errors.Is(err, orchestrator.ErrNewerSchema):
		return reply{}, &failure{status: http.StatusUnprocessableEntity, problem: problem{Code: codeNewerSchema, Message: "The file was written by a newer version of this program: " + err.Error() + "."}}
	case err != nil:
		return reply{}, &failure{status: http.StatusUnprocessableEntity, problem: problem{Code: codeNoHistory, Message: "The file is no history of an orchestration: " + err.Error() + "."}}
	}
	return reply{data: a.openedOf(h)}, nil
}

func (a *api) openedOf(h orchestrator.History) openedHistory {
	last := h.Rounds[len(h.Rounds)-1]
	latest := h.Rounds
	for len(latest) > 0 && latest[0].Execution != last.Execution {
		latest = latest[1:]
	}
	in := orchestrator.Inspection{Snapshot: orchestrator.Snapshot{Summary: h.Summary(), Round: last.Number, Reference: h.Outcome.Reference}, Outcome: h.Outcome, Rounds: latest}
	out := openedHistory{Orchestration: a.detailOf(in), Rounds: []roundItem{}, Timeline: []timelineItem{}}
	entries, bytes := 0, 0
	for _, one := range h.Rounds {
		entries += len(one.Learned) + len(one.Decided)
		if entries > maxOpened || bytes > maxOpenedPayload {
			out.EntriesLeft += len(one.Learned) + len(one.Decided)
			continue
		}
		item := roundItemOf(one)
		for _, e := range append(item.Learned, item.Decided...) {
			bytes += len(e.Payload)
		}
		out.Rounds = append(out.Rounds, item)
	}
	items := timeline.OfHistory(h, a.now)
	if len(items) > maxOpened {
		out.ItemsLeft = len(items) - maxOpened
		items = items[:maxOpened]
	}
	for _, i := range items {
		out.Timeline = append(out.Timeline, a.timelineItemOf(i))
	}
	return out
}
