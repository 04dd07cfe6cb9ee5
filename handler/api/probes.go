package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/api/health"
)

const (
	healthType = "application/health+json"
	textType   = "text/plain"
)

// scrape answers Prometheus.
func (a *api) scrape(ctx context.Context, r *request) (reply, error) {
	page, err := a.metrics.Scrape(ctx, r.http.Header)
	if len(page.Body) == 0 {
		return reply{}, err
	}
	if err != nil {
		a.log.WarnContext(ctx, "scrape without what storage knows", "correlationId", r.correlationID, "error", engine.Redact(err.Error()))
	}
	return reply{document: &document{page.ContentType, page.Body}}, nil
}

func (a *api) live(_ context.Context, r *request) (reply, error) {
	return probe(r, a.health.Live(), false)
}

// ready is public, so it shows only the status, and the kind of a storage failure.
func (a *api) ready(ctx context.Context, r *request) (reply, error) {
	return probe(r, a.health.Ready(ctx), false)
}

func (a *api) full(ctx context.Context, r *request) (reply, error) {
	return probe(r, a.health.Full(ctx), true)
}

// probe answers with a report as application/health+json, or with its status in words for text/plain.
func probe(r *request, report health.Report, details bool) (reply, error) {
	rep := reply{status: http.StatusOK}
	if report.Status == health.Fail {
		rep.status = http.StatusServiceUnavailable
	}
	if r.accepts(textType) {
		rep.document = &document{textType + "; charset=utf-8", []byte(report.Status.Word() + "\n")}
		return rep, nil
	}
	if !details {
		report = health.Report{Status: report.Status, Output: report.Output}
	}
	body, err := json.Marshal(report)
	if err != nil {
		return reply{}, fmt.Errorf("encode a health report: %w", err) // unreachable unless a ratio is not a number
	}
	rep.document = &document{healthType, append(body, '\n')}
	return rep, nil
}
