package trigger

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// Whoever counts is told of every invocation of a function that there is, by a host or not, and how it ended.
func TestObserve(t *testing.T) {
	t.Parallel()
	var told []Observed
	handle := func(_ context.Context, d engine.Delivery) error {
		switch string(d.Body) {
		case "bad":
			return errors.New("no")
		case "panic":
			panic("oh")
		}
		return nil
	}
	c := Config{Queues: map[string]Queue{"work": {Queue: "q", Parameter: "item", Handle: handle}},
		Timers:  map[string]Timer{"tick": {Parameter: "timer", Handle: func(context.Context, TimerDelivery) error { return ErrIdle }}},
		Observe: func(_ context.Context, o Observed) { o.Took = min(o.Took, 0); told = append(told, o) }}
	e := echo.New()
	testenv.Check(t, Mount(e, c))
	for _, call := range []struct{ function, body string }{
		{"work", `{"Data": {"item": "good"}}`}, {"work", `{"Data": {"item": "bad"}}`}, {"work", `{"Data": {"item": "panic"}}`},
		{"tick", `{"Data": {"timer": {}}}`}, {"made-up", `{}`},
	} {
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/"+call.function, strings.NewReader(call.body)))
	}
	testenv.Check(t, NewDirect(c).Run(t.Context(), "work", c.Queues["work"], engine.Delivery{Body: []byte("good")}))
	want := []Observed{{Function: "work", Outcome: "done"}, {Function: "work", Outcome: "retry"}, {Function: "work", Outcome: "panicked"}, {Function: "tick", Outcome: "idle"},
		{Function: "work", Outcome: "done", Direct: true}}
	testenv.Diff(t, want, told, "")
}
