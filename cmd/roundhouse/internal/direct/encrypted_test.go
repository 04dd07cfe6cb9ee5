package direct_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/direct"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// keyless wraps nothing: the data keys are next to the data.
type keyless struct{}

func (keyless) Wrap(_ context.Context, key []byte) ([]byte, string, error) {
	return key, "payloads/1", nil
}

func (keyless) Unwrap(_ context.Context, _ string, wrapped []byte) ([]byte, error) {
	return wrapped, nil
}

// Over storage, encrypted rows are listed and shown with a note instead of payloads, and not changed; clear rows are
// unchanged.
func TestEncryptedRows(t *testing.T) {
	t.Parallel()
	memory := tables.NewMemory()
	envelope := testenv.Must(codec.NewEnvelope(codec.EnvelopeConfig{Keys: keyless{}}))(t)
	clear := maps.Clone(engine.ClearColumns())
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for name, store := range map[string]tables.Store{"sealed": codec.Config{Codec: envelope, Clear: clear}.Tables(memory), "clear": memory} {
		letters, history := engine.NewDeadLetters(store, ""), engine.NewHistory(store, "")
		err := errors.Join(letters.CreateTable(t.Context()), history.CreateTable(t.Context()))
		_, added := letters.Add(t.Context(), engine.DeadLetter{Engine: "work", MessageID: name, CorrelationID: name, InsertedAtUtc: at, LastFailureAtUtc: at,
			OriginalMessage: []byte(`{"in":"the message"}`), ErrorMessage: "the error", OriginalQueue: "work-queue"})
		recorded := history.Record(t.Context(), engine.Entry{Engine: "work", CorrelationID: name, Operation: "do", Status: engine.StatusFailed, CreatedAtUtc: at,
			Input: json.RawMessage(`"the input"`), Output: json.RawMessage(`"the output"`), Error: "the error"})
		testenv.OK(t, errors.Join(err, added, recorded))
	}
	transport, err := direct.New(direct.Config{Tables: memory, Queues: queues.NewMemory(), Blobs: blobs.NewMemory(), Engines: []string{"work"}, By: "ann", Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, direct.Address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer := testenv.Must(transport.RoundTrip(r))(t)
		defer answer.Body.Close()
		text := testenv.Must(io.ReadAll(answer.Body))(t)
		return answer.StatusCode, string(text)
	}
	for _, list := range []string{"/api/dlq", "/api/history", "/api/dlq/groups", "/api/dlq/counts"} {
		if status, text := ask(http.MethodGet, list, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", list, status, text)
		}
	}
	for name, sealed := range map[string]bool{"sealed": true, "clear": false} {
		letter := "/api/dlq/work/" + url.PathEscape(name+"-20261122T000000.000000Z")
		entry := "/api/history/work/" + url.PathEscape(name+"-20261122T000000.000000Z")
		for path, texts := range map[string][]string{letter: {"the message", "the error"}, entry: {"the input", "the output", "the error"}} {
			status, answer := ask(http.MethodGet, path, "")
			if status != http.StatusOK || strings.Contains(answer, "encrypted with the key payloads/1") != sealed {
				t.Errorf("%s: %d %s", path, status, answer)
			}
			for _, text := range texts {
				if strings.Contains(answer, text) == sealed {
					t.Errorf("%s: %q in %s", path, text, answer)
				}
			}
		}
		status, answer := ask(http.MethodPatch, letter, `{"status":"Resolved","resolutionNotes":"done"}`)
		if want := map[bool]int{true: http.StatusConflict, false: http.StatusOK}[sealed]; status != want || sealed && !strings.Contains(answer, "encrypted") {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	e, err := memory.Get(t.Context(), engine.DefaultDeadLetterTable, tables.Key{Partition: "work", Row: "sealed-20261122T000000.000000Z"})
	if err != nil || e.String("Status") != string(engine.StatusPending) || len(e.Bytes("Sealed")) == 0 {
		t.Errorf("%v, %v", e.Properties, err)
	}
	got, err := engine.NewDeadLetters(codec.Config{Codec: envelope, Clear: clear}.Tables(memory), "").Get(t.Context(), "work", "sealed-20261122T000000.000000Z")
	if err != nil || string(got.OriginalMessage) != `{"in":"the message"}` {
		t.Error(fmt.Sprint(got, err))
	}
}

// History and dead letters are read from the tables that the app has recorded.
func TestTablesOfTheApp(t *testing.T) {
	t.Parallel()
	memory, at := tables.NewMemory(), time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	instances := registry.New(memory, "")
	history, letters := engine.NewHistory(memory, "deeds"), engine.NewDeadLetters(memory, "letters")
	err := errors.Join(instances.CreateTable(t.Context()), history.CreateTable(t.Context()), letters.CreateTable(t.Context()),
		history.Record(t.Context(), engine.Entry{Engine: "work", CorrelationID: "c1", Operation: "do", Status: engine.StatusSucceeded, CreatedAtUtc: at}))
	_, added := letters.Add(t.Context(), engine.DeadLetter{Engine: "work", MessageID: "m1", CorrelationID: "c2", InsertedAtUtc: at, LastFailureAtUtc: at, OriginalQueue: "work-queue"})
	_, noted := instances.Apply(t.Context(), "publisher", registry.TableNames{DeadLetters: "letters", History: "deeds"})
	testenv.OK(t, errors.Join(err, added, noted))
	transport, err := direct.New(direct.Config{Tables: memory, Queues: queues.NewMemory(), Blobs: blobs.NewMemory(), Engines: []string{"work"}, By: "ann", Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/api/history": `"c1"`, "/api/dlq": `"c2"`, "/api/timeline/c2": `"deadLetter"`, "/api/registry": `"items":[]`} {
		r := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, direct.Address+path, http.NoBody))(t)
		answer := testenv.Must(transport.RoundTrip(r))(t)
		text, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %s, %v", path, answer.StatusCode, text, err)
		}
	}
}
