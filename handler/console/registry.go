package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

const (
	registryPath = Root + "/registry"
	instancePath = registryPath + "/:instance"
)

// registryPage is a page of the list of instances.
type registryPage struct {
	Tenant, Ring, Locked string
	// Narrowed reports whether a filter is set.
	Narrowed bool
	Items    []instanceItem
	// Next is the address of the next page, and First that of the first; "" for none.
	Next, First string
	// Problem is the error of the filter.
	Problem Text
}

// instanceItem is an instance in lists.
type instanceItem struct {
	InstanceID Text         `json:"instanceId"`
	TenantID   Text         `json:"tenantId"`
	Ring       Text         `json:"ring"`
	Version    Text         `json:"version"`
	Lock       instanceLock `json:"lock"`
	Own        bool         `json:"own"`
	Damaged    Text         `json:"damaged"`
}

// instanceLock is the lock that keeps engines from an instance.
type instanceLock struct {
	Held      bool      `json:"held"`
	JobID     Text      `json:"jobId"`
	Until     time.Time `json:"untilUtc"`
	DrainedBy Text      `json:"drainedBy"`
}

// State returns the lock in one word.
func (l instanceLock) State() string {
	switch {
	case l.DrainedBy != "":
		return "Drained"
	case l.Held:
		return "Locked"
	default:
		return "Free"
	}
}

// Link returns the address of its page.
func (i instanceItem) Link() string { return registryPath + "/" + urlpath.Escape(string(i.InstanceID)) }

// instances lists those of the registry.
func instances(ctx context.Context, v *visit) (page, error) {
	query, kept := v.r.URL.Query(), url.Values{}
	for _, name := range []string{"tenantId", "ring", "locked"} {
		if value := query.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	p := registryPage{Tenant: kept.Get("tenantId"), Ring: kept.Get("ring"), Locked: kept.Get("locked"), Narrowed: len(kept) > 0}
	here := address(registryPath, kept)
	if token := query.Get("continuationToken"); token != "" {
		kept.Set("continuationToken", token)
		p.First = here
	}
	var list struct {
		Items []instanceItem `json:"items"`
		Token string         `json:"continuationToken"`
	}
	out := page{template: "registry", title: "Registry", model: &p, live: Soon}
	err := v.api.get(ctx, "/api/registry", kept, &list)
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	out.elsewhere = v.list("registry", "list")
	p.Items = list.Items
	if list.Token != "" {
		kept.Set("continuationToken", list.Token)
		p.Next = address(registryPath, kept)
	}
	return out, nil
}

// instancePageModel is one instance.
type instancePageModel struct {
	Instance instanceDetail
	Document Payload
	// Tables are the app's tables, for its own document only.
	Tables Payload
	// Done is the last action of this page, as a sentence; "" for none.
	Done string
	// Missing is the permission that the user lacks to drain and resume it.
	Missing access.Permission
}

// instanceDetail is one instance.
type instanceDetail struct {
	instanceItem
	RegistryVersion int64           `json:"registryVersion"`
	Document        json.RawMessage `json:"document"`
	Tables          json.RawMessage `json:"tablesInUse"`

	etag string
}

// instanceRow returns the path of the instance in the API.
func (v *visit) instanceRow() string {
	return "/api/registry/" + urlpath.Escape(v.r.PathValue("instance"))
}

// findInstance reads the instance in the path.
func (v *visit) findInstance(ctx context.Context) (i instanceDetail, err error) {
	header, err := v.api.send(ctx, http.MethodGet, v.instanceRow(), nil, nil, nil, &i)
	i.etag = header.Get("ETag")
	return i, err
}

// instance shows one.
func instance(ctx context.Context, v *visit) (page, error) {
	i, err := v.findInstance(ctx)
	if err != nil {
		return page{}, err
	}
	p := instancePageModel{Instance: i, Document: payloadOf(string(i.Document)), Tables: payloadOf(string(i.Tables))}
	for _, a := range []instanceAct{drain(), resume()} {
		if v.r.URL.Query().Get("done") == a.done {
			p.Done = a.said
		}
	}
	if !v.may(access.RegistryWrite) {
		p.Missing = access.RegistryWrite
	}
	return page{template: "instance", title: "Instance " + i.InstanceID.String(), model: p, elsewhere: v.thing(i.InstanceID, showLine("registry show", string(i.InstanceID)))}, nil
}

// instanceAct is an action on an instance.
type instanceAct struct {
	// path is the last segment of its address and of that of the API, done the key of the notice on the page of the
	// instance, and said its text.
	path, done, said string
	// title is its name, button the label of the button, and consequence the effect.
	title, button, consequence string
	// lasts means that it has a duration and a reason.
	lasts bool
	// reached reports whether an instance is already in the resulting state, so that a form which is sent twice acts once.
	reached func(i instanceDetail, v *visit) bool
}

// drain keeps engines from an instance.
func drain() instanceAct {
	return instanceAct{path: "drain", done: "drained", said: "The instance is drained.", title: "Drain an instance", button: "Drain", lasts: true,
		consequence: "Engines leave the instance alone until the time is over, or somebody resumes it. Messages for it wait, and lose no attempt. A run that has its lock is not disturbed: then nothing is done.",
		reached:     func(i instanceDetail, v *visit) bool { return i.Lock.DrainedBy == v.me.ID && i.Lock.Held }}
}

// resume admits them again.
func resume() instanceAct {
	return instanceAct{path: "resume", done: "resumed", said: "The instance is not drained any more.", title: "Resume an instance", button: "Resume",
		consequence: "Engines go on with the instance, and with the messages that have waited, whoever has drained it.",
		reached:     func(i instanceDetail, _ *visit) bool { return !i.Lock.Held }}
}

// pageOf returns the confirmation page.
func (a instanceAct) pageOf(v *visit, i instanceDetail, form url.Values) *confirmPage {
	p := &confirmPage{Title: a.title, Button: a.button, Consequence: a.consequence, What: i.InstanceID, Back: i.Link(), Action: i.Link() + "/" + a.path, ETag: i.etag,
		Key: cmp.Or(form.Get("key"), v.console.config.NewKey()), HasReason: a.lasts, Reason: lines(form.Get("reason"))}
	p.need(v, access.RegistryWrite)
	if !a.lasts {
		return p
	}
	for _, hours := range []int{1, 4, 24, 72, 168} {
		d := duration{Seconds: strconv.Itoa(hours * 3600), Label: span(time.Duration(hours) * time.Hour)}
		d.Selected = d.Seconds == form.Get("forSeconds")
		p.Durations = append(p.Durations, d)
	}
	return p
}

// askInstance shows the confirmation page.
func askInstance(a instanceAct) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		i, err := v.findInstance(ctx)
		if err != nil {
			return page{}, err
		}
		return a.pageOf(v, i, nil).shown(), nil
	}
}

// doInstance does it, and leads back to the instance.
func doInstance(a instanceAct) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		form, header, err := v.posted()
		if err != nil {
			return page{}, err
		}
		body := map[string]any{}
		if a.lasts {
			if seconds, err := strconv.Atoi(form.Get("forSeconds")); err == nil {
				body["forSeconds"] = seconds
			}
			if reason := lines(form.Get("reason")); reason != "" {
				body["reason"] = reason
			}
		}
		i := instanceDetail{instanceItem: instanceItem{InstanceID: Text(v.r.PathValue("instance"))}}
		err = v.post(ctx, v.instanceRow()+"/"+a.path, header, body, nil)
		if err != nil && status(err) != http.StatusNotFound && status(err) != http.StatusForbidden {
			now, readErr := v.findInstance(ctx)
			if readErr != nil {
				return page{}, readErr
			}
			if i = now; status(err) == http.StatusPreconditionFailed && a.reached(now, v) {
				err = nil
			}
		}
		return a.pageOf(v, i, form).outcome(err, address(i.Link(), url.Values{"done": {a.done}}))
	}
}
