package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
)

// openPath is the page that opens a downloaded history.
const openPath = Root + "/history"

// maxUpload bounds its form's body, in bytes: a history, with the form's overhead.
const maxUpload = api.MaxHistory + 64<<10

// openPage asks for a history.
type openPage struct {
	// Problem is the reason why the upload could not be opened, "" for none.
	Problem Text
	// Most is its maximum size, formatted.
	Most string
}

// openedHistory is the API's answer about a history.
type openedHistory struct {
	Orchestration orchestrationDetail `json:"orchestration"`
	Rounds        []roundItem         `json:"rounds"`
	Timeline      []json.RawMessage   `json:"timeline"`
	EntriesLeft   int                 `json:"entriesLeft"`
	ItemsLeft     int                 `json:"itemsLeft"`
}

// download returns the history of an orchestration as a file.
func download(ctx context.Context, v *visit) (page, error) {
	header, body, err := v.api.fetch(ctx, v.orchestrationRow()+"/history", http.StatusOK)
	if e, ok := asAPIError(err); ok && e.Status != http.StatusNotFound {
		return backTo(failedPage(err), orchestrationLink(Text(v.r.PathValue("id"))), "the orchestration"), nil
	}
	if err != nil {
		return page{}, err
	}
	return page{file: &file{disposition: header.Get("Content-Disposition"), contentType: "application/json", body: body}}, nil
}

// askHistory shows the page that asks for a history.
func askHistory(_ context.Context, v *visit) (page, error) {
	if !v.may(access.OrchestrationsRead) {
		return page{}, &apiError{Status: http.StatusForbidden, Code: "Forbidden", Message: "You need the permission " + Text(access.OrchestrationsRead) + "."}
	}
	return openPage{Most: size(api.MaxHistory)}.page(http.StatusOK, ""), nil
}

func (p openPage) page(status int, code string) page {
	return page{template: "openhistory", title: "Open a history", status: status, code: code, model: p}
}

// showHistory shows an uploaded history like the page of an orchestration. Nothing of it is kept.
func showHistory(ctx context.Context, v *visit) (page, error) {
	text, problem := sentHistory(v.r)
	if problem != "" && v.may(access.OrchestrationsRead) {
		return openPage{problem, size(api.MaxHistory)}.page(http.StatusBadRequest, "InvalidRequestBody"), nil
	}
	var opened openedHistory
	err := v.api.post(ctx, "/api/orchestrations/history/open", text, &opened)
	if refused, ok := asAPIError(err); ok && refused.Status != http.StatusForbidden && refused.Status != http.StatusUnauthorized {
		return openPage{refused.Message, size(api.MaxHistory)}.page(refused.Status, refused.Code), nil
	}
	if err != nil {
		return page{}, err
	}
	return page{template: "orchestration", title: "A history", model: offlinePage(opened)}, nil
}

// offlinePage returns the page of an orchestration from its history alone.
func offlinePage(h openedHistory) orchestrationPage {
	o := h.Orchestration
	p := orchestrationPage{Run: o, Offline: true, Input: payloadOf(string(o.Input)), Output: payloadOf(string(o.Output)), CustomStatus: payloadOf(string(o.CustomStatus)), Left: h.ItemsLeft > 0}
	p.Rounds = roundsPart{Left: h.EntriesLeft, most: maxOfflineRows}
	p.Rounds.addAll(h.Rounds)
	all := timelineList{Items: h.Timeline}.rows()
	if p.Chart = chartOf(rowsOf(all, o.ID), cmp.Or(o.EndedAt, o.UpdatedAt)); p.Chart != nil {
		p.Chart.Now = 0 // the file has no present
	}
	p.Children = childrenOf(o, all, p.Rounds.Rows)
	return p
}

// sentHistory returns the history in a form: a file, or a text.
func sentHistory(r *http.Request) (text []byte, problem Text) {
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, "This was sent by no form of this page."
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		var sent []byte
		if err == nil {
			sent, err = io.ReadAll(part)
		}
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) || len(sent) > api.MaxHistory {
			return nil, Text("The file is larger than " + size(api.MaxHistory) + ".")
		}
		if err != nil {
			return nil, "The form cannot be read. Send it again."
		}
		if name := part.FormName(); (name == "file" || name == "text") && len(sent) > 0 {
			text = sent
		}
	}
	if len(text) == 0 {
		return nil, "Choose a file, or enter what is in one."
	}
	return text, ""
}

// historyRoutes are the pages of histories from files.
func historyRoutes() []route {
	return []route{
		routeOf(http.MethodGet, orchestrationPath+"/history", access.OrchestrationsRead, download),
		routeOf(http.MethodGet, openPath, access.OrchestrationsRead, askHistory),
		routeOf(http.MethodPost, openPath, access.OrchestrationsRead, showHistory),
	}
}
