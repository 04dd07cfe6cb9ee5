package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/orchestrator"
)

// payloadApp is an app whose engine brings payloads to every place that the platform has for them.
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

// payloadInput is what a message asks for.
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

// fan makes more activities than one process runs, so that the others go through the activity queue.
func (w *payloadWork) fan(ctx *orchestrator.Context, text string) (string, error) {
	var calls []*orchestrator.Future[string]
	for i := range 1010 {
		calls = append(calls, w.echo.Call(ctx, fmt.Sprint(text, i)))
	}
	_, err := orchestrator.All(calls...)
	return text, err
}

// wait asks for an event and for a person.
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

// all does everything else.
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
