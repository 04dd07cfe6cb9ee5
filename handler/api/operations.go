package api

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/orchestrator"
)

// pollAfter is how long to wait before looking at an operation again, in seconds.
const pollAfter = "2"

// operationItem is an operation as its resource shows it.
type operationItem struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Status is NotStarted, Running, Succeeded, Failed or Canceled.
	Status string `json:"status"`
	// CorrelationID is that of the request which started it, and of everything that the log says about it.
	CorrelationID string        `json:"correlationId"`
	Request       bulk.Request  `json:"request"`
	Progress      bulk.Progress `json:"progress"`
	CreatedAt     time.Time     `json:"createdAt"`
	LastUpdatedAt time.Time     `json:"lastUpdatedAt"`
	EndedAt       time.Time     `json:"endedAt,omitzero"`
	Error         *problem      `json:"error,omitempty"`
}

func (a *api) getOperation(ctx context.Context, r *request) (reply, error) {
	op, err := a.bulk.Get(ctx, operation(r))
	if err != nil {
		return reply{}, err
	}
	return running(op), nil
}

// cancelOperation asks an operation to end, which it does a little later.
func (a *api) cancelOperation(ctx context.Context, r *request) (reply, error) {
	var d decision
	if err := r.decode(&d); err != nil {
		return reply{}, err
	}
	q := newQuery("")
	q.values.Set("by", d.By)
	reason := "requested"
	if by := q.text("by", maxReason); by != "" {
		reason = "requested by " + by
	}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	op, err := a.bulk.Cancel(ctx, operation(r), reason)
	if err != nil {
		return reply{}, err
	}
	return accepted(op), nil
}

// maxReason bounds who asks for a cancellation, in bytes.
const maxReason = 128

// operation is the id in the path; what cannot be decoded is the id of none.
func operation(r *request) string {
	id, _ := r.param("operation")
	return id
}

// running shows an operation, with when to look again while it is not at its end.
func running(op bulk.Operation) reply {
	header := map[string]string{"Operation-Location": "/api/operations/" + op.ID}
	if !op.Ended() {
		header["Retry-After"] = pollAfter
	}
	item := operationItem{
		ID: op.ID, Kind: op.Kind, Status: operationStatus(op.Status), CorrelationID: op.CorrelationID, Request: op.Request, Progress: op.Progress,
		CreatedAt: op.CreatedAt, LastUpdatedAt: op.UpdatedAt, EndedAt: op.EndedAt,
	}
	switch {
	case op.Status == orchestrator.Stalled:
		item.Error = &problem{Code: codeStalled, Message: "The operation cannot go on with the program that is deployed; its orchestration has the reason. It goes on by itself when that is mended."}
	case op.Status == orchestrator.Failed && op.Progress.Returned > 0:
		item.Error = &problem{Code: codeCanary, Message: "What was tried first came back, so the rest was left alone. See why, and start another operation."}
	case op.Status == orchestrator.Failed:
		item.Error = &problem{Code: codeInternal, Message: "The operation gave up. Its log has the reason under its correlation id; start another one for what is left."}
	}
	return reply{data: item, header: header}
}

// operationStatus is the status of an orchestration in the words of operations.
func operationStatus(s orchestrator.Status) string {
	switch s {
	case orchestrator.Pending:
		return "NotStarted"
	case orchestrator.Completed:
		return "Succeeded"
	case orchestrator.Failed:
		return "Failed"
	case orchestrator.Canceled, orchestrator.Terminated:
		return "Canceled"
	default: // it runs, is suspended or stalled
		return "Running"
	}
}
