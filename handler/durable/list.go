package durable

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// defaultTop and maxTop are the default and maximum length of a page.
	defaultTop = 100
	maxTop     = 500
	// continuationHeader carries the continuation token, in and out.
	continuationHeader = "x-ms-continuation-token"
	// parallel bounds the instances of a page that are read in parallel.
	parallel = 8
	// purgeSlice is the number of instances to purge between two checks of the time.
	purgeSlice = 50
)

// list lists instances. With the input of active ones, and the output of ended ones, a page costs one query for each
// instance.
func (s *server) list(in *call) (answer, error) {
	f := orchestrator.Filter{Prefix: in.text("instanceIdPrefix"), TenantID: in.door.Principal.Scope}
	f.CreatedFrom, _ = in.when("createdTimeFrom")
	if to, ok := in.when("createdTimeTo"); ok {
		f.CreatedTo = to
	}
	f.Statuses, _ = in.statuses()
	top, ok := in.number("top")
	if !ok || top < 1 {
		top = defaultTop
	}
	after, err := placeOf(in.http.Header.Get(continuationHeader))
	if err != nil {
		return answer{}, err
	}
	found, next, err := s.List(in.ctx, f, min(top, maxTop), after)
	if err != nil {
		return answer{}, err
	}
	views, err := s.inspectAll(in, found)
	if err != nil {
		return answer{}, err
	}
	out := document(http.StatusOK, views)
	if next != "" {
		out.header = map[string]string{continuationHeader: tokenOf(next)}
	}
	return out, nil
}

// tokenOf returns a place for a header: a place can be an id, and headers change blanks and non-ASCII characters.
func tokenOf(place string) string { return base64.RawURLEncoding.EncodeToString([]byte(place)) }

// placeOf reads a token, which is external data; the list itself checks whether it has such a place.
func placeOf(token string) (string, error) {
	place, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || tokenOf(string(place)) != token {
		return "", orchestrator.ErrContinuation
	}
	return string(place), nil
}

// inspectAll reads the instances of a page. Instances purged meanwhile are left out; an unreadable one has only its
// status, without input and output.
func (s *server) inspectAll(in *call, found []orchestrator.Summary) ([]shown, error) {
	views := make([]*shown, len(found))
	input := in.flag("showInput", true)
	group, ctx := errgroup.WithContext(in.ctx)
	group.SetLimit(parallel)
	one := *in
	one.ctx = ctx
	for i, summary := range found {
		if !input && !summary.Ended() {
			view := summaryOf(summary)
			views[i] = &view
			continue
		}
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil { // no other code recovers in this goroutine
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			view, _, err := s.inspect(&one, summary.ID, input, false, false)
			switch {
			case errors.Is(err, orchestrator.ErrNotFound):
				return nil
			case errors.Is(err, orchestrator.ErrCorrupt), errors.Is(err, orchestrator.ErrNewerSchema):
				s.Log.Warn("an instance of a list cannot be read", "orchestrationId", summary.ID, "error", engine.Redact(err.Error()))
				view, err = summaryOf(summary), nil
			}
			views[i] = &view
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := []shown{}
	for _, view := range views {
		if view != nil {
			all = append(all, *view)
		}
	}
	return all, nil
}

// purged is the number of purged instances.
type purged struct {
	InstancesDeleted int `json:"instancesDeleted"`
}

// purge deletes an ended instance. An active one is not touched.
func (s *server) purge(in *call) (answer, error) {
	status, err := s.own(in)
	if err != nil {
		return answer{}, err
	}
	if err := in.begin("purge", status, ""); err != nil {
		return answer{}, err
	}
	err = s.Runtime.Purge(in.ctx, in.instance())
	switch {
	case errors.Is(err, orchestrator.ErrActive):
		return document(http.StatusOK, purged{0}), nil
	case err != nil:
		return answer{}, err
	}
	return document(http.StatusOK, purged{1}), nil
}

// purgeMany deletes the selected instances that have ended, within the available time.
func (s *server) purgeMany(in *call) (answer, error) {
	var f orchestrator.Filter
	var ok bool
	if f.CreatedFrom, ok = in.when("createdTimeFrom"); !ok {
		return document(http.StatusBadRequest, "Please provide value for 'createdTimeFrom' parameter."), nil
	}
	if f.CreatedTo, ok = in.when("createdTimeTo"); !ok {
		if in.text("createdTimeTo") != "" {
			return answer{}, badArgument("createdTimeTo is not a time")
		}
		f.CreatedTo = s.Now()
	}
	if f.Statuses, ok = in.statuses(); !ok {
		return answer{}, badArgument("runtimeStatus holds what is no status")
	}
	f.TenantID = in.door.Principal.Scope
	change := access.Change{Action: "purge", Target: "orchestrations", Tenant: f.TenantID,
		Before: fmt.Sprintf("created from %s to %s, with the statuses %v", f.CreatedFrom.Format(time.RFC3339), f.CreatedTo.Format(time.RFC3339), f.Statuses)}
	if err := in.door.Begin(in.ctx, change); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(in.ctx, s.Timeout-settle)
	defer cancel()
	total := 0
	for next := ""; ; {
		p, err := s.Runtime.PurgeAll(ctx, f, purgeSlice, next)
		total += p.Orchestrations
		outOfTime := ctx.Err() != nil && in.ctx.Err() == nil
		if err != nil && !outOfTime {
			return answer{}, err
		}
		if next = p.Continuation; next == "" || outOfTime {
			break
		}
	}
	in.after = fmt.Sprintf("%d instances purged", total)
	if total == 0 {
		return nothing(http.StatusNotFound), nil
	}
	return document(http.StatusOK, purged{total}), nil
}
