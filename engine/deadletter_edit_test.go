package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// edited is good with another input, and another has a third one; all name the same work.
const (
	edited  = `{"correlationId":"c1","engine":"turntable","instanceId":"i1","tenantId":"Contoso","input":{"degrees":45}}`
	another = `{"correlationId":"c1","engine":"turntable","instanceId":"i1","tenantId":"Contoso","input":{"degrees":30}}`
)

// editor returns a retrier that accepts edited messages.
func (w *world) editor(t *testing.T, plan *enginetest.Plan) *engine.Retrier {
	t.Helper()
	p := w.Restart(plan)
	r, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: engine.NewDeadLetters(p.Stores.Tables, ""), Queues: p.Stores.Queues, CheckEdit: p.CheckEdit})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// At any fault at any call during the work on an edited message that is delivered twice, the failed run starts over
// with the edited input, keeps no results, and succeeds once.
func TestEditedRunAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"plain", "singleton per instance"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			enginetest.FailEverywhere(t, nil, func(t *testing.T, plan *enginetest.Plan) {
				w := newWorld(t)
				kinds[kind](w)
				w.dry = orchestrator.Permanent(errors.New("no oil")) // the first operation has completed then
				w.Send(testQueue, good)
				w.Restart(nil).Run()
				letter := w.DeadLetters("turntable")[0]
				w.dry = nil
				if _, err := w.editor(t, nil).RetryEdited(t.Context(), letter.Engine, letter.RowKey, "me", engine.Edit{Message: []byte(edited)}); err != nil {
					t.Fatal(err)
				}
				messages, err := w.Queues.Receive(t.Context(), testQueue, 1, time.Second)
				if err != nil || len(messages) != 1 {
					t.Fatalf("%d messages, %v", len(messages), err)
				}
				w.Send(testQueue, string(queues.Decode(messages[0].Text))) // a second copy
				time.Sleep(2 * time.Second)                                // virtual
				before := w.turns.Load()
				w.Restart(plan)
				w.Run()
				if w.turns.Load() == before || w.degrees.Load() != 45 {
					t.Errorf("it ran %d times anew, by %d degrees", w.turns.Load()-before, w.degrees.Load())
				}
				runs := 0
				for _, e := range w.History("turntable", "c1") {
					if e.RunStatus == engine.StatusSucceeded {
						runs++
					}
				}
				if dead := w.DeadLetters("turntable"); runs != 1 || len(dead) != 1 {
					t.Errorf("%d runs have succeeded, dead letters %+v", runs, dead)
				}
				w.checkSuperseded(t, "c1")
			})
		})
	}
}

// An edit that cannot be sent is refused before any change, with the reason.
func TestEditIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, letter := broken(t)
		letters := engine.NewDeadLetters(w.Tables, "")
		add := func(id string, change func(l *engine.DeadLetter)) string {
			l := letter
			l.MessageID = id
			change(&l)
			if _, err := letters.Add(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			return l.Key()
		}
		message := func(body string) engine.Edit { return engine.Edit{Message: []byte(body)} }
		for name, test := range map[string]struct {
			row  string
			edit engine.Edit
			want error
			says string
		}{
			"as it was":         {letter.RowKey, message(good), engine.ErrEdit, "as it was"},
			"no JSON":           {letter.RowKey, message(`{"correlationId":`), engine.ErrEdit, "cannot be decoded"},
			"binary":            {letter.RowKey, message("\xff{}"), engine.ErrEdit, "UTF-8"},
			"too long":          {letter.RowKey, message(strings.Replace(edited, "45", strings.Repeat("4", engine.MaxMessage), 1)), engine.ErrEdit, "are allowed"},
			"unknown member":    {letter.RowKey, message(strings.Replace(edited, "degrees", "radians", 1)), engine.ErrEdit, "radians"},
			"wrong type":        {letter.RowKey, message(strings.Replace(edited, "45", `"45"`, 1)), engine.ErrEdit, "degrees"},
			"other correlation": {letter.RowKey, message(strings.Replace(edited, "c1", "c2", 1)), engine.ErrEdit, `the correlation id has to stay "c1"`},
			"no correlation":    {letter.RowKey, message(strings.Replace(edited, `"correlationId":"c1",`, "", 1)), engine.ErrEdit, "the correlation id has to stay"},
			"other tenant":      {letter.RowKey, message(strings.Replace(edited, "Contoso", "Fabrikam", 1)), engine.ErrEdit, "the tenant has to stay"},
			"other instance":    {letter.RowKey, message(strings.Replace(edited, "i1", "i2", 1)), engine.ErrEdit, "the instance has to stay"},
			"other engine":      {letter.RowKey, message(strings.Replace(edited, "turntable", "hmac", 1)), engine.ErrEdit, "the engine"},
			"a blob":            {letter.RowKey, message(`{"correlationId":"c1","instanceId":"i1","tenantId":"Contoso","blob":"turntable/c2/0"}`), engine.ErrEdit, "blob"},
			"a hidden secret":   {letter.RowKey, message(`{"correlationId":"c1","instanceId":"i1","tenantId":"Contoso","note":"[redacted]","input":{"degrees":45}}`), engine.ErrEdit, "[redacted]"},
			"stale":             {letter.RowKey, engine.Edit{Message: []byte(edited), IfMatch: `W/"old"`}, engine.ErrChanged, ""},
			"nothing":           {"nothing" + letter.RowKey[len(letter.MessageID):], message(edited), engine.ErrNotFound, ""},
			"resolved":          {add("done", func(l *engine.DeadLetter) { l.Status = engine.StatusResolved }), message(edited), engine.ErrState, ""},
			"no queue":          {add("na", func(l *engine.DeadLetter) { l.OriginalQueue = "N/A" }), message(edited), engine.ErrNotEditable, "queue"},
			"stalled":           {add("stalled", func(l *engine.DeadLetter) { l.DetectedReason = engine.ReasonStalled }), message(edited), engine.ErrNotEditable, "goes on by itself"},
			"damaged":           {add("damaged", func(l *engine.DeadLetter) { l.DetectedReason = engine.ReasonInconsistent }), message(edited), engine.ErrNotEditable, "damaged"},
			"no text":           {add("binary", func(l *engine.DeadLetter) { l.OriginalMessage = []byte("\xff\x00") }), message(edited), engine.ErrNotEditable, "not text"},
		} {
			_, err := w.editor(t, nil).RetryEdited(t.Context(), letter.Engine, test.row, "me", test.edit)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, want %v with %q", name, err, test.want, test.says)
			}
		}
		if l, err := letters.Get(t.Context(), letter.Engine, letter.RowKey); err != nil || l.ETag != letter.ETag {
			t.Errorf("it has changed: %+v, %v", l, err)
		}
		if _, err := w.retrier(t, &faults.Plan{}, nil).RetryEdited(t.Context(), letter.Engine, letter.RowKey, "me", message(edited)); !errors.Is(err, engine.ErrNotEditable) {
			t.Errorf("without a check: %v", err)
		}
	})
}

// An unreadable message can be fixed: the correlation id is the derived one, or the one that the sender intended.
// After a plain retry has begun, edits are refused, and a dead letter that is pending again is sent unchanged.
func TestEditWhatNobodyCouldDecode(t *testing.T) {
	t.Parallel()
	for name, mended := range map[string]string{"derived": `{"input":{"degrees":45}}`, "meant": edited} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.Send(testQueue, `{"correlationId":"c1", "input":`)
				w.Restart(nil).Run()
				letter := w.DeadLetters("turntable")[0]
				edit := engine.Edit{Message: []byte(mended)}
				if _, err := w.editor(t, nil).RetryEdited(t.Context(), letter.Engine, letter.RowKey, "me", edit); err != nil {
					t.Fatal(err)
				}
				w.Restart(nil).Run()
				if dead := w.DeadLetters("turntable"); len(dead) != 1 || w.degrees.Load() != 45 {
					t.Errorf("by %d degrees, dead letters %+v", w.degrees.Load(), dead)
				}
				letters := engine.NewDeadLetters(w.Tables, "")
				pending, err := letters.Decide(t.Context(), letter.Engine, letter.RowKey, engine.Decision{Status: engine.StatusPending, At: time.Now()})
				if err != nil || pending.SentMessage != nil {
					t.Errorf("pending again: %+v, %v", pending, err)
				}
				plain, err := w.retrier(t, &faults.Plan{}, nil).Retry(t.Context(), letter.Engine, letter.RowKey, "me")
				if err != nil {
					t.Fatal(err)
				}
				w.checkCopies(t, plain, `{"correlationId":"c1", "input":`)
				if _, err := w.editor(t, nil).RetryEdited(t.Context(), letter.Engine, letter.RowKey, "me", edit); !errors.Is(err, engine.ErrOtherMessage) {
					t.Errorf("an edit after a plain retry: %v", err)
				}
			})
		})
	}
}

// A dead letter whose work has succeeded in the meantime cannot be edited.
func TestEditOfWhatHasSucceeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, letter := broken(t)
		w.turn = nil
		w.Send(testQueue, good) // its sender has sent it again
		w.Restart(nil).Run()
		_, err := w.editor(t, nil).RetryEdited(t.Context(), letter.Engine, letter.RowKey, "me", engine.Edit{Message: []byte(edited)})
		if !errors.Is(err, engine.ErrNotEditable) || !strings.Contains(err.Error(), "has succeeded") {
			t.Errorf("%v", err)
		}
	})
}

// A second copy of an edited message makes another attempt at its own run, which keeps completed results.
func TestEditedRunGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, letter := broken(t)
		w.turn, w.dry = nil, orchestrator.Permanent(errors.New("no oil"))
		sent, err := w.editor(t, nil).RetryEdited(t.Context(), letter.Engine, letter.RowKey, "me", engine.Edit{Message: []byte(edited)})
		if err != nil {
			t.Fatal(err)
		}
		w.checkCopies(t, sent, edited)
		messages, err := w.Queues.Receive(t.Context(), testQueue, 1, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		w.Send(testQueue, string(queues.Decode(messages[0].Text)))
		time.Sleep(2 * time.Second) // virtual
		before := w.turns.Load()
		w.Restart(nil).Run()
		if n, oiled := w.turns.Load()-before, w.oiled.Load(); n != 1 || oiled != 2 {
			t.Errorf("the first operation ran %d times, the second one %d times", n, oiled)
		}
	})
}

// An engine that adapts foreign messages treats an edited one as the same work, and still runs it.
func TestEditOfAdaptedMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapt = func(body []byte) (engine.Message, bool, error) {
			m := engine.Message{CorrelationID: "c1", InstanceID: "i1", Input: body}
			return m, true, nil
		}
		w.turn = func(context.Context) error { return orchestrator.Permanent(errors.New("jammed")) }
		w.Send(testQueue, `{"degrees":90}`)
		w.Restart(nil).Run()
		letter := w.DeadLetters("turntable")[0]
		w.turn = nil
		if _, err := w.editor(t, nil).RetryEdited(t.Context(), letter.Engine, letter.RowKey, "me", engine.Edit{Message: []byte(`{"degrees":45}`)}); err != nil {
			t.Fatal(err)
		}
		w.Restart(nil).Run()
		if dead := w.DeadLetters("turntable"); len(dead) != 1 || w.degrees.Load() != 45 {
			t.Errorf("by %d degrees, dead letters %+v", w.degrees.Load(), dead)
		}
	})
}
