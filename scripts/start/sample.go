package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/queues"
)

const (
	sampleQueue     = "hmac-rotation-queue"
	sampleOperation = "rotate"
	samplePoll      = 200 * time.Millisecond
	maxAnswer       = 1 << 20
)

// sample sends one message and follows it by the API, as any client would.
type sample struct {
	base   string
	queues queues.Store
	out    *progress
}

// answer is the API's envelope.
type answer struct {
	Status string          `json:"status"`
	Data   json.RawMessage `json:"data"`
	Error  struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// entry is a history entry as the API gives it.
type entry struct {
	Engine        string `json:"engine"`
	RowKey        string `json:"rowKey"`
	InstanceID    string `json:"instanceId"`
	Operation     string `json:"operation"`
	Status        string `json:"status"`
	DurationMs    int64  `json:"durationMs"`
	CorrelationID string `json:"correlationId"`
	ErrorMessage  string `json:"errorMessage"` // of a dead letter
	Output        struct {
		SecretName string `json:"secretName"`
		Version    string `json:"version"`
	} `json:"output"`

	raw json.RawMessage
}

func (s sample) run(ctx context.Context) (entry, error) {
	correlationID := uuid.NewString()
	message, err := json.Marshal(map[string]any{
		"correlationId": correlationID, "engine": "hmac", "operation": sampleOperation, "instanceId": "sample-instance", "tenantId": "sample-tenant",
	})
	if err != nil {
		return entry{}, err
	}
	id, err := s.queues.Send(ctx, sampleQueue, message, 0)
	if err != nil {
		return entry{}, fmt.Errorf("send the sample message: %w", err)
	}
	s.out.step("Sent a sample message to %s (message %s)", sampleQueue, id)
	s.out.note("%s", message)
	found, err := s.follow(ctx, correlationID)
	if err != nil {
		return entry{}, err
	}
	return s.get(ctx, "/api/history/"+found.Engine+"/"+url.PathEscape(found.RowKey))
}

// follow waits until the run of the message has come to rest.
func (s sample) follow(ctx context.Context, correlationID string) (entry, error) {
	tick := time.NewTicker(samplePoll)
	defer tick.Stop()
	for shown := 0; ; {
		entries, err := s.list(ctx, "/api/history", correlationID)
		if err != nil {
			return entry{}, err
		}
		for i := len(entries) - 1 - shown; i >= 0; i-- { // the newest is first
			e := entries[i]
			s.out.note("%-8s %s in %d ms", e.Operation, e.Status, e.DurationMs)
			shown++
		}
		for _, e := range entries {
			if e.Operation == sampleOperation && e.Status == "Succeeded" {
				return e, nil
			}
		}
		dead, err := s.list(ctx, "/api/dlq", correlationID)
		if err != nil {
			return entry{}, err
		}
		if len(dead) > 0 {
			return entry{}, fmt.Errorf("the sample message is in the dead letters: %s", dead[0].ErrorMessage)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return entry{}, errors.Join(errors.New("the sample message did not come to rest"), context.Cause(ctx))
		}
	}
}

func (s sample) list(ctx context.Context, path, correlationID string) ([]entry, error) {
	data, err := s.fetch(ctx, path+"?correlationId="+url.QueryEscape(correlationID))
	if err != nil {
		return nil, err
	}
	var page struct {
		Items []entry `json:"items"`
	}
	if err := json.Unmarshal(data, &page); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return page.Items, nil
}

func (s sample) get(ctx context.Context, path string) (entry, error) {
	data, err := s.fetch(ctx, path)
	if err != nil {
		return entry{}, err
	}
	e := entry{raw: data}
	if err := json.Unmarshal(data, &e); err != nil {
		return entry{}, fmt.Errorf("read %s: %w", path, err)
	}
	return e, nil
}

func (s sample) fetch(ctx context.Context, path string) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("%s answered %s without the API's envelope: %w", path, resp.Status, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: %s: %s", path, resp.Status, a.Error.Code, a.Error.Message)
	}
	return a.Data, nil
}

// show prints the result for people.
func (e entry) show(w io.Writer, base string, ports storagePorts) {
	fmt.Fprintf(w, `
History entry
  engine         %s
  operation      %s of instance %s
  status         %s in %d ms
  correlation id %s
  row key        %s

New key version  %s
  of the secret  %s

Go on with
  %s/api/history
  %s/api/history/%s/%s
  %s/api/dlq
  %s/admin/functions
Storage is Azurite on ports %s (blob,queue,table); connection string UseDevelopmentStorage=true for the default ports.

Ctrl-C stops everything.
`, e.Engine, e.Operation, e.InstanceID, e.Status, e.DurationMs, e.CorrelationID, e.RowKey,
		e.Output.Version, e.Output.SecretName,
		base, base, e.Engine, url.PathEscape(e.RowKey), base, base, &ports)
}
