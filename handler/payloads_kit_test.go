package handler_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// payloadApp returns an app whose engine puts payloads into every place of the platform.
func payloadApp() handler.App {
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		w := newPayloadWork()
		return []engine.Definition{{Name: "work", Queue: "work-queue", Orchestrator: engine.Orchestrate("work", w.run), MaxAttempts: 2,
			Children: []orchestrator.AnyOrchestrator{w.child, w.series}, Operations: []orchestrator.AnyActivity{w.echo, w.fail},
			Intakes: []engine.Intake{{Function: "work-intake", Route: "work"}}}}, nil
	}}
}

type payloadWork struct {
	echo, fail *orchestrator.Activity[string, string]
	child      *orchestrator.Orchestrator[string, string]
	series     *orchestrator.Orchestrator[payloadTurn, string]
}

// payloadInput is the request of a message.
type payloadInput struct {
	Do   string `json:"do"`
	Text string `json:"text"`
}

// payloadTurn is the input of one of a series of executions.
type payloadTurn struct {
	Text string `json:"text"`
	Left int    `json:"left"`
}

func newPayloadWork() *payloadWork {
	w := &payloadWork{
		echo: orchestrator.NewActivity("echo", func(_ context.Context, text string) (string, error) { return text, nil }),
		fail: orchestrator.NewActivity("fail", func(_ context.Context, text string) (string, error) {
			return "", orchestrator.Permanent(errors.New("no " + text))
		}),
	}
	w.child = orchestrator.NewOrchestrator("work-child", func(ctx *orchestrator.Context, text string) (string, error) { return w.echo.Call(ctx, text).Await() })
	w.series = orchestrator.NewOrchestrator("work-series", func(ctx *orchestrator.Context, turn payloadTurn) (string, error) {
		if _, err := w.echo.Call(ctx, turn.Text).Await(); err != nil || turn.Left == 0 {
			return turn.Text, err
		}
		return "", orchestrator.ContinueAsNew(payloadTurn{turn.Text, turn.Left - 1})
	})
	return w
}

func (w *payloadWork) run(ctx *orchestrator.Context, r engine.Request[payloadInput]) (string, error) {
	text := r.Input.Text
	switch r.Input.Do {
	case "refuse":
		return "", orchestrator.Permanent(errors.New("refused: " + text))
	case "fail":
		return "", errors.New("failed: " + text)
	case "echo":
		return w.echo.Call(ctx, text).Await()
	case "crash":
		large, err := w.echo.Call(ctx, strings.Repeat(text+" ", 2000)).Await()
		part, failed := w.child.Call(ctx, text).Await()
		return part, errors.Join(err, failed, ctx.Publish(orchestrator.Publication{TenantID: "contoso", Type: "crash", Payload: json.RawMessage(`"` + large + `"`)}))
	case "tell":
		payload, err := json.Marshal(text)
		return text, errors.Join(err, ctx.Publish(orchestrator.Publication{TenantID: "contoso", Type: "told", Payload: payload}))
	case "fan":
		return w.fan(ctx, text)
	case "wait":
		return w.wait(ctx, text)
	}
	return w.all(ctx, r.TenantID, text)
}

// fan starts more activities than one process runs, so that the others go through the activity queue.
func (w *payloadWork) fan(ctx *orchestrator.Context, text string) (string, error) {
	var calls []*orchestrator.Future[string]
	for i := range 1010 {
		calls = append(calls, w.echo.Call(ctx, fmt.Sprint(text, i)))
	}
	_, err := orchestrator.All(calls...)
	return text, err
}

// wait waits for an event and a human task.
func (w *payloadWork) wait(ctx *orchestrator.Context, text string) (string, error) {
	event, err := orchestrator.Event[string](ctx, "go").Await()
	if err != nil {
		return "", err
	}
	asked := orchestrator.AskPerson[payloadInput](ctx, orchestrator.HumanTask{Name: "decide", Payload: text,
		Form: json.RawMessage(`{"type": "object", "title": "` + text + `"}`)})
	answer, err := asked.Await()
	return event + answer.Output.Text, err
}

// all uses all other features.
func (w *payloadWork) all(ctx *orchestrator.Context, tenant, text string) (string, error) {
	large := strings.Repeat(text+" ", 8000)
	noted, err := orchestrator.SideEffect(ctx, "noted", func() string { return text })
	_, failed := w.fail.Call(ctx, text).Await()
	for _, call := range []func() (string, error){w.echo.Call(ctx, noted).Await, w.echo.Call(ctx, large).Await, w.child.Call(ctx, text).Await,
		w.series.Call(ctx, payloadTurn{text, 3}).Await} {
		_, more := call()
		err = errors.Join(err, more)
	}
	if failed == nil {
		err = errors.Join(err, errors.New("the activity fail has not failed"))
	}
	small, bad := json.Marshal(text)
	much, alsoBad := json.Marshal(large)
	err = errors.Join(err, bad, alsoBad, ctx.SetStatus(map[string]string{"text": text}))
	for i, payload := range []json.RawMessage{small, much} {
		err = errors.Join(err, ctx.Publish(orchestrator.Publication{TenantID: "contoso", Type: fmt.Sprint("work.done.", i), Payload: payload, Key: fmt.Sprint(i)}))
	}
	return text, err
}

// recorder searches everything that is written to storage for a text.
type recorder struct {
	forms [][]byte // of the text

	mu       sync.Mutex
	found    map[string]bool // where it was
	seen     int             // values looked at
	inflater io.ReadCloser   // reused for all values: a new one has large buffers
}

func newRecorder(text string) *recorder {
	return &recorder{forms: forms(text), found: map[string]bool{}, inflater: flate.NewReader(nil)}
}

// watch calls look with everything that is written to the stores of an app.
func watch(c *handler.Config, look looking) {
	c.Tables, c.Queues, c.Blobs = watchedTables{c.Tables, look}, watchedQueues{c.Queues, look}, watchedBlobs{c.Blobs, look}
}

type looking func(where string, value []byte)

type watchedTables struct {
	tables.Store
	look looking
}

func (s watchedTables) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	for _, op := range ops {
		s.look("keys of "+table, []byte(op.Entity.Key.String()))
		var row bytes.Buffer // columns that continue each other, such as the chunks of a round
		for _, name := range slices.Sorted(maps.Keys(op.Entity.Properties)) {
			switch value := op.Entity.Properties[name].(type) {
			case string:
				s.look("table "+table+" column "+name, []byte(value))
				row.WriteString(value)
			case []byte:
				s.look("table "+table+" column "+name, value)
				row.Write(value)
			}
		}
		s.look("table "+table, row.Bytes())
	}
	return s.Store.Apply(ctx, table, ops...)
}

type watchedQueues struct {
	queues.Store
	look looking
}

func (s watchedQueues) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	s.look("queue "+queue, body)
	return s.Store.Send(ctx, queue, body, delay)
}

type watchedBlobs struct {
	blobs.Store
	look looking
}

func (s watchedBlobs) Put(ctx context.Context, container, name string, data []byte) error {
	s.look("names of "+container, []byte(name))
	s.look("container "+container, data)
	return s.Store.Put(ctx, container, name, data)
}

func (s watchedBlobs) PutIf(ctx context.Context, container, name string, data []byte, etag string) error {
	s.look("container "+container+" (conditional)", data)
	return s.Store.PutIf(ctx, container, name, data, etag)
}

// look searches a value, in every encoding.
func (r *recorder) look(where string, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen++; !r.found[where] && r.holds(value, 3) {
		r.found[where] = true
	}
}

// holds reports whether a value contains the marker: directly, in base64 at any offset, in hexadecimal, or inside the
// decoded or inflated value.
func (r *recorder) holds(value []byte, depth int) bool {
	if slices.ContainsFunc(r.forms, func(form []byte) bool { return bytes.Contains(value, form) }) {
		return true
	}
	if depth == 0 {
		return false
	}
	var inner [][]byte
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		if data, err := encoding.DecodeString(string(value)); err == nil && len(data) > 0 {
			inner = append(inner, data)
		}
	}
	if data, err := hex.DecodeString(string(value)); err == nil && len(data) > 0 {
		inner = append(inner, data)
	}
	_ = r.inflater.(flate.Resetter).Reset(bytes.NewReader(value), nil)
	if data, _ := io.ReadAll(r.inflater); len(data) > len(value)/2 && len(data) > 0 {
		inner = append(inner, data)
	}
	return slices.ContainsFunc(inner, func(data []byte) bool { return r.holds(data, depth-1) })
}

// forms returns a text, its hexadecimal form, and the part of its base64 that is the same in any context.
func forms(text string) [][]byte {
	all := [][]byte{[]byte(text), []byte(hex.EncodeToString([]byte(text)))}
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		all = append(all, []byte(encoded[4:len(encoded)-4]))
	}
	return all
}

// places returns the sorted places of the text.
func (r *recorder) places() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.found))
}
