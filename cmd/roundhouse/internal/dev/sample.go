package dev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/urlpath"
	"github.com/vibedata/roundhouse/queues"
)

const (
	samplePoll = 200 * time.Millisecond
	maxAnswer  = 1 << 20
)

// example returns the engine of the sample, and the message.
func (p *platform) example() (about engine.Description, m engine.Message, ok bool) {
	if p.NoSample {
		return about, m, false
	}
	for _, about := range p.manifest.Engines {
		if about.Example != nil && (p.Engine == "" || p.Engine == about.Name) {
			return about, *about.Example, true
		}
	}
	return about, m, false
}

// sample sends one message and follows it by the API, like any client.
type sample struct {
	base   string
	key    string // of the app; "" for none
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

// entry is a history entry of the API.
type entry struct {
	Engine        string          `json:"engine"`
	RowKey        string          `json:"rowKey"`
	InstanceID    string          `json:"instanceId"`
	Operation     string          `json:"operation"`
	Status        string          `json:"status"`
	DurationMs    int64           `json:"durationMs"`
	CorrelationID string          `json:"correlationId"`
	Output        json.RawMessage `json:"output"`

	raw json.RawMessage
}

// timeline holds the events of a correlation id, oldest first.
type timeline struct {
	Items []struct {
		History    *entry `json:"history"`
		DeadLetter *struct {
			ErrorMessage string `json:"errorMessage"`
		} `json:"deadLetter"`
		Orchestration *struct {
			EndedAt    time.Time `json:"endedAtUtc"`
			WaitingFor string    `json:"waitingFor"`
		} `json:"orchestration"`
	} `json:"items"`
}

// run sends the message and returns the history entry of the engine's first operation, or else another one. A run
// that waits for a person or for a long time returns none, unless toTheEnd is set.
func (s sample) run(ctx context.Context, about engine.Description, m engine.Message, toTheEnd bool) (entry, error) {
	m.Engine, m.CorrelationID = about.Name, uuid.NewString()
	body, err := json.Marshal(m)
	if err != nil {
		return entry{}, err
	}
	id, err := s.queues.Send(ctx, about.Queue, body, 0)
	if err != nil {
		return entry{}, fmt.Errorf("send the sample message: %w", err)
	}
	s.out.step("Sent a sample message to %s (message %s)", about.Queue, id)
	s.out.note("%s", body)
	entries, err := s.follow(ctx, m.CorrelationID, toTheEnd)
	if err != nil || len(entries) == 0 {
		return entry{}, err
	}
	chosen := entries[len(entries)-1]
	for _, e := range entries {
		if e.Operation == about.Operations[0] {
			chosen = e
		}
	}
	return s.get(ctx, "/api/history/"+urlpath.Escape(chosen.Engine)+"/"+urlpath.Escape(chosen.RowKey))
}

// follow waits until the run has ended, or waits itself.
func (s sample) follow(ctx context.Context, correlationID string, toTheEnd bool) ([]entry, error) {
	tick := time.NewTicker(samplePoll)
	defer tick.Stop()
	for shown, told := 0, false; ; {
		t, err := s.timeline(ctx, correlationID)
		if err != nil {
			return nil, err
		}
		var entries []entry
		ended, waitsFor := false, ""
		for _, item := range t.Items {
			switch {
			case item.DeadLetter != nil:
				return nil, fmt.Errorf("the sample message is in the dead letters: %s", item.DeadLetter.ErrorMessage)
			case item.History != nil:
				entries = append(entries, *item.History)
			case item.Orchestration != nil:
				ended = ended || !item.Orchestration.EndedAt.IsZero()
				if item.Orchestration.WaitingFor != "Activity" {
					waitsFor = cmp.Or(waitsFor, item.Orchestration.WaitingFor)
				}
			}
		}
		for ; shown < len(entries); shown++ {
			s.out.note("%-8s %s in %d ms", entries[shown].Operation, entries[shown].Status, entries[shown].DurationMs)
		}
		if ended && len(entries) > 0 {
			return entries, nil
		}
		if waitsFor != "" && !ended && !told {
			s.out.note("It waits (%s).", waitsFor)
			if told = true; !toTheEnd {
				return entries, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(errors.New("the sample message did not come to rest"), context.Cause(ctx))
		}
	}
}

// errUnknown: the app does not know the object.
var errUnknown = errors.New("not found")

// timeline returns an empty value until the app knows the message.
func (s sample) timeline(ctx context.Context, correlationID string) (t timeline, err error) {
	path := "/api/timeline/" + urlpath.Escape(correlationID)
	data, err := s.fetch(ctx, path)
	if errors.Is(err, errUnknown) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
	}
	return t, err
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
	if s.key != "" {
		req.Header.Set("x-functions-key", s.key)
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
	if resp.StatusCode == http.StatusNotFound && a.Error.Code != "" {
		return nil, fmt.Errorf("%s: %w: %s", path, errUnknown, a.Error.Message)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: %s: %s", path, resp.Status, a.Error.Code, a.Error.Message)
	}
	return a.Data, nil
}

// show prints a result.
func (e entry) show(w io.Writer) {
	if e.RowKey == "" {
		return
	}
	output := bytes.Buffer{}
	if json.Indent(&output, e.Output, "                 ", "  ") != nil {
		output.WriteString("none")
	}
	fmt.Fprintf(w, `
History entry
  engine         %s
  operation      %s of instance %s
  status         %s in %d ms
  correlation id %s
  row key        %s
  output         %s
`, e.Engine, e.Operation, e.InstanceID, e.Status, e.DurationMs, e.CorrelationID, e.RowKey, &output)
}
