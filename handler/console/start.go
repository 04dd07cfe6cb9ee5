package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// startPath is the list of engines that can be started, startEnginePath the form of one of them, by its name.
const (
	startPath       = Root + "/start"
	startEnginePath = startPath + "/:engine"
)

// engineItem is an engine as in the API.
type engineItem struct {
	Name        Text            `json:"name"`
	Queue       Text            `json:"queue"`
	Version     Text            `json:"version"`
	Operations  []Text          `json:"operations"`
	Singleton   string          `json:"singleton"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Example     *struct {
		Operation  string          `json:"operation"`
		InstanceID string          `json:"instanceId"`
		TenantID   string          `json:"tenantId"`
		Input      json.RawMessage `json:"input"`
	} `json:"example"`
}

// Link returns the address of the form that starts it.
func (e engineItem) Link() string { return startPath + "/" + urlpath.Escape(string(e.Name)) }

// engineItems are those of the app.
type engineItems struct {
	Engines []engineItem `json:"engines"`
}

// startList are the engines that can be started.
type startList struct {
	Engines []engineItem
	// Missing is the permission that the user lacks for it, "" for none.
	Missing access.Permission
}

// startForm is the form that starts an engine.
type startForm struct {
	Engine engineItem
	// Operation, InstanceID, TenantID and CorrelationID are the inputs.
	Operation, InstanceID, TenantID, CorrelationID string
	Input                                          *documentEntry
	// Problem is the reason why it was not started, "" for none.
	Problem Text
	// Action is the target of the form, Key makes repeats of the form one start, and Missing is the permission that the
	// user lacks.
	Action, Key string
	Missing     access.Permission
}

// listEngines shows the engines that can be started.
func listEngines(ctx context.Context, v *visit) (page, error) {
	var all engineItems
	if err := v.api.get(ctx, "/api/engines", nil, &all); err != nil {
		return page{}, err
	}
	return page{template: "start", title: "Start", model: startList{all.Engines, v.missing(access.OrchestrationsStart)}}, nil
}

// startFormOf returns the empty form for the engine in the path.
func (v *visit) startFormOf(ctx context.Context) (*startForm, error) {
	var all engineItems
	if err := v.api.get(ctx, "/api/engines", nil, &all); err != nil {
		return nil, err
	}
	for _, e := range all.Engines {
		if string(e.Name) != v.r.PathValue("engine") {
			continue
		}
		asJSON := v.r.URL.Query().Get("as") == "json"
		p := &startForm{Engine: e, Action: e.Link(), Key: v.console.config.NewKey(), Missing: v.missing(access.OrchestrationsStart),
			Input: entryOf("input", e.InputSchema, asJSON, e.Link(), e.Link()+"?as=json")}
		p.Input.Off = p.Missing != ""
		if asJSON {
			p.Action += "?as=json"
		}
		return p, nil
	}
	return nil, &apiError{Status: http.StatusNotFound, Code: "NotFound", Message: "There is no such engine here."}
}

// propose enters the example of the engine, if it has no invisible characters. Fields have their schema's defaults.
func (p *startForm) propose() {
	e := p.Engine.Example
	if e == nil {
		return
	}
	p.Operation, p.InstanceID, p.TenantID = plainly(e.Operation), plainly(e.InstanceID), plainly(e.TenantID)
	var indented bytes.Buffer // numbers stay unchanged: nothing is decoded
	if p.Input.Fields == nil && len(e.Input) <= maxPayload && json.Indent(&indented, e.Input, "", "  ") == nil {
		p.Input.Text = plainly(indented.String())
	}
}

// plainly returns a text, or "" if it has invisible characters: a user has to see all of a text that they send.
func plainly(text string) string {
	if Text(text).String() != text {
		return ""
	}
	return text
}

// enter stores the form's values in it again.
func (p *startForm) enter(form url.Values) {
	p.Key = cmp.Or(form.Get("key"), p.Key)
	p.Operation, p.InstanceID, p.TenantID, p.CorrelationID = form.Get("operation"), form.Get("instanceId"), form.Get("tenantId"), form.Get("correlationId")
	p.Input.enter(form)
}

// body returns the API's request body, or the error of the input.
func (p *startForm) body() (map[string]any, Text) {
	input, problem := p.Input.document()
	message := map[string]any{}
	for name, value := range map[string]string{"operation": p.Operation, "instanceId": p.InstanceID, "tenantId": p.TenantID} {
		if value != "" {
			message[name] = value
		}
	}
	if input != nil {
		message["input"] = input
	}
	body := map[string]any{"orchestrator": string(p.Engine.Name), "input": message}
	if p.CorrelationID != "" {
		body["correlationId"] = p.CorrelationID
	}
	return body, problem
}

// askStart shows the form.
func askStart(ctx context.Context, v *visit) (page, error) {
	p, err := v.startFormOf(ctx)
	if err != nil {
		return page{}, err
	}
	p.propose()
	return page{template: "startform", title: "Start " + p.Engine.Name.String(), model: p,
		elsewhere: &elsewhere{Command: commandLine("roundhouse", "orchestration", "start", string(p.Engine.Name))}}, nil
}

// doStart starts an orchestration, and leads to its page. A form that is sent twice starts one. After a refusal, the
// form is shown again with the input.
func doStart(ctx context.Context, v *visit) (page, error) {
	if err := v.r.ParseForm(); err != nil {
		return refusedPage(http.StatusBadRequest, "InvalidRequestBody", "The form cannot be read, or is too large."), nil
	}
	if !v.may(access.OrchestrationsStart) { // the API reports and records it
		_, err := v.api.send(ctx, http.MethodPost, "/api/orchestrations", nil, nil, map[string]string{"orchestrator": v.r.PathValue("engine")}, nil)
		return page{}, cmp.Or(err, error(&apiError{Status: http.StatusForbidden, Code: "Forbidden", Message: "You need the permission " + Text(access.OrchestrationsStart) + "."}))
	}
	p, err := v.startFormOf(ctx)
	if err != nil {
		return page{}, err
	}
	p.enter(v.r.PostForm)
	body, problem := p.body()
	if problem != "" {
		return p.again(http.StatusUnprocessableEntity, "InvalidRequestBody", problem), nil
	}
	var started orchestrationItem
	_, err = v.api.send(ctx, http.MethodPost, "/api/orchestrations", nil, http.Header{"Idempotency-Key": {p.Key}}, body, &started)
	refused, ok := asAPIError(err)
	switch {
	case err == nil:
		return page{to: address(started.Link(), url.Values{"done": {startedDone}})}, nil
	case !ok:
		return page{}, err
	case refused.Code == keyReused:
		p.Key = v.console.config.NewKey()
		return p.again(refused.Status, refused.Code, "This form has started an orchestration before, with other values. Send it again to start another one."), nil
	}
	return p.again(refused.Status, refused.Code, refused.Message), nil
}

const (
	// startedDone is the notice on the page of an orchestration after its start.
	startedDone = "start"
	// keyReused is the API's code for a key that it knows with another body.
	keyReused = "IdempotencyKeyReused"
)

// again shows the form with the input, and its error.
func (p *startForm) again(status int, code string, problem Text) page {
	p.Problem = problem
	return page{template: "startform", title: "Start " + p.Engine.Name.String(), status: status, code: code, model: p}
}

// startRoutes are the pages that start orchestrations.
func startRoutes() []route {
	return []route{
		routeOf(http.MethodGet, startPath, access.PlatformRead, listEngines),
		routeOf(http.MethodGet, startEnginePath, access.PlatformRead, askStart),
		routeOf(http.MethodPost, startEnginePath, access.OrchestrationsStart, doStart),
	}
}
