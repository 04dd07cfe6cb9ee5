package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

func TestMessagesThatAreDeadAtOnce(t *testing.T) {
	t.Parallel()
	big := `{"correlationId":"big","input":"` + strings.Repeat("x", 64<<10-40) + `"}`
	tests := map[string]struct {
		body     string
		reason   engine.Reason
		message  string
		instance string
	}{
		"not JSON":             {"this is not JSON", engine.ReasonUndecodable, "not a JSON object", ""},
		"empty":                {"", engine.ReasonUndecodable, "not a JSON object", ""},
		"an array":             {"[1]", engine.ReasonUndecodable, "not a JSON object", ""},
		"half an object":       {`{"correlationId":"c`, engine.ReasonUndecodable, "unexpected end", ""},
		"wrong types":          {`{"correlationId":7}`, engine.ReasonUndecodable, "correlationId is a number, and has to be a string", ""},
		"not UTF-8":            {"{\"correlationId\":\"\xff\xfe\"}", engine.ReasonUndecodable, "not UTF-8", ""},
		"with NUL":             {"{\x00}", engine.ReasonUndecodable, "invalid character", ""},
		"unknown engine":       {`{"correlationId":"u","engine":"roundabout","instanceId":"i1"}`, engine.ReasonUnknownEngine, `"roundabout"`, "i1"},
		"64 KiB":               {big, engine.ReasonOverSize, "48128 are allowed", ""},
		"correlation too long": {`{"correlationId":"` + strings.Repeat("c", 129) + `"}`, engine.ReasonOverSize, "129 bytes", ""},
		"ids of all kinds": {`{"correlationId":"a/b\\c#d?e-日本-%2F","engine":"nobody","instanceId":"/subscriptions/1/x\\y#z?ü"}`,
			engine.ReasonUnknownEngine, `"nobody"`, `/subscriptions/1/x\y#z?ü`},
		"unknown input":       {`{"correlationId":"f","instanceId":"i1","input":{"degree":90}}`, engine.ReasonPermanent, `unknown field "degree"`, "i1"},
		"input of other type": {`{"correlationId":"f","instanceId":"i1","input":"90"}`, engine.ReasonPermanent, "the value is a string, and has to be an object", "i1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.Restart(nil)
			d := engine.Delivery{Queue: testQueue, ID: "11111111-2222-3333-4444-555555555555", Body: []byte(tt.body), DequeueCount: 1,
				InsertedAt: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
			// Delivered twice: the acknowledgement of the first can get lost.
			for range 2 {
				if err := p.Handle(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				d.DequeueCount++
			}
			dead := w.DeadLetters("turntable")
			if len(dead) != 1 {
				t.Fatalf("%d dead letters", len(dead))
			}
			l := dead[0]
			if !bytes.Equal(l.OriginalMessage, []byte(tt.body)) || l.DetectedReason != tt.reason || !strings.Contains(l.ErrorMessage, tt.message) ||
				l.DequeueCount != 1 || l.OriginalQueue != testQueue || l.InstanceID != tt.instance || l.Status != engine.StatusPending || l.CorrelationID == "" {
				t.Errorf("%+v", l)
			}
			if l.FirstFailureAtUtc.IsZero() || l.LastFailureAtUtc.Before(l.FirstFailureAtUtc) {
				t.Errorf("failed from %v to %v", l.FirstFailureAtUtc, l.LastFailureAtUtc)
			}
			if w.turns.Load() != 0 {
				t.Error("an operation ran")
			}
		})
	}
}

func TestIDsOfAllKindsRun(t *testing.T) {
	t.Parallel()
	for _, id := range []string{`a/b\c#d?e`, "日本-ü-🚂", "~'%20=", strings.Repeat("/", 128), "x-20261121T000000.000000Z"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			body, err := json.Marshal(engine.Message{CorrelationID: id, InstanceID: id, Input: []byte(`{"degrees":1}`)})
			if err != nil {
				t.Fatal(err)
			}
			w.Send(testQueue, string(body))
			w.Restart(nil).Run()
			w.checkSucceeded(t, id)
			if got := w.History("turntable", id)[1]; got.InstanceID != id || got.CorrelationID != id {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestPoison(t *testing.T) {
	t.Parallel()
	poison := func(body string) engine.Delivery {
		return engine.Delivery{Queue: testQueue + engine.PoisonSuffix, ID: "poison-1", Body: []byte(body), DequeueCount: 1, InsertedAt: time.Unix(1e9, 0)}
	}
	tests := map[string]struct {
		body    string
		before  func(t *testing.T, w *world)
		message string // of the one dead letter; "" for none from the poison queue
		fate    engine.Fate
	}{
		"never ran":   {good, nil, "no attempt could report an error", engine.DeadLettered},
		"undecodable": {"garbage", nil, "not a JSON object", engine.DeadLettered},
		"already dead": {good, func(t *testing.T, w *world) {
			w.turn = func(context.Context) error { return orchestrator.Permanent(errors.New("jammed")) }
			w.Send(testQueue, good)
			w.Restart(nil).Run()
		}, "", engine.Duplicate},
		"failed before": {good, func(t *testing.T, w *world) {
			w.turn = func(context.Context) error { return errors.New("jammed") }
			if err := w.Restart(nil).Handle(t.Context(), engine.Delivery{Queue: testQueue, ID: "m", Body: []byte(good), DequeueCount: 1}); err == nil {
				t.Fatal("it did not fail")
			}
		}, "jammed", engine.DeadLettered},
		"succeeded after all": {good, func(t *testing.T, w *world) {
			w.Send(testQueue, good)
			w.Restart(nil).Run()
		}, "", engine.Duplicate},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if tt.before != nil {
					tt.before(t, w)
				}
				p := w.Restart(nil)
				known := len(w.DeadLetters("turntable"))
				for range 2 {
					if err := p.HandlePoison(t.Context(), poison(tt.body)); err != nil {
						t.Fatal(err)
					}
				}
				if p.Count(tt.fate) == 0 {
					t.Errorf("no delivery was %s", tt.fate)
				}
				dead := w.DeadLetters("turntable")
				if tt.message == "" {
					if len(dead) != known {
						t.Errorf("%d dead letters, %d before", len(dead), known)
					}
					return
				}
				if len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, tt.message) || string(dead[0].OriginalMessage) != tt.body ||
					dead[0].DequeueCount != 8 || dead[0].OriginalQueue != testQueue || dead[0].DetectedReason != engine.ReasonPoison {
					t.Errorf("%+v", dead)
				}
			})
		})
	}
}

// While storage refuses the dead letter, a poison message is requeued; it never becomes invisible for ever.
func TestPoisonWaitsForStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const queue = testQueue + engine.PoisonSuffix
		w := newWorld(t)
		d := engine.Delivery{Queue: queue, ID: "poison-1", Body: []byte(good), DequeueCount: 1, InsertedAt: time.Unix(1e9, 0)}
		for at := 1; at <= 4; at++ { // read dead letters, history and orchestration; write
			p := w.Restart(&faults.Plan{At: at, Fault: faults.Throttled})
			if err := p.HandlePoison(t.Context(), d); err != nil || p.Count(engine.Parked) != 1 {
				t.Fatalf("call %d: %v", at, err)
			}
			time.Sleep(time.Minute)
			d = w.Take(queue)
		}
		if err := w.Restart(nil).HandlePoison(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		dead := w.DeadLetters("turntable")
		if len(dead) != 1 || string(dead[0].OriginalMessage) != good || dead[0].DequeueCount != 8 || dead[0].MessageID != "poison-1" {
			t.Errorf("%+v", dead)
		}
	})
}

// A message may begin with a byte-order mark, as those of some senders do, and its dead letter has it, too.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Send(testQueue, "\xef\xbb\xbf"+good)
		w.Restart(nil).Run()
		w.checkSucceeded(t, "c1")
		w.Send(testQueue, "\xef\xbb\xbf[]")
		w.Restart(nil).Run()
		if dead := w.DeadLetters("turntable"); len(dead) != 1 || string(dead[0].OriginalMessage) != "\xef\xbb\xbf[]" {
			t.Errorf("%+v", dead)
		}
		m, err := w.definition().Accept([]byte("\xef\xbb\xbf" + good))
		if err != nil || m.CorrelationID != "c1" {
			t.Errorf("over HTTP: %+v, %v", m, err)
		}
	})
}

// A header line from a sender does not use up attempts, and a malformed header is replaced.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	body := good
	for name, line := range map[string]string{
		"attempts":       `{"attempts":99}`,
		"with an id":     `{"messageId":"m","insertedAt":"2026-11-21T10:00:00Z","attempts":99}`,
		"just enough":    `{"messageId":"m","attempts":4}`,
		"largest":        `{"messageId":"m","attempts":9223372036854775807}`,
		"too large":      `{"messageId":"m","attempts":9223372036854775808}`,
		"negative":       `{"messageId":"m","attempts":-99}`,
		"a text":         `{"messageId":"m","attempts":"99"}`,
		"nothing":        `{}`,
		"another object": `{"causes":["x"],"messageId":7}`,
		"a long id":      `{"messageId":"` + strings.Repeat("m", 200) + `","attempts":99}`,
		"a retry":        `{"messageId":"m","attempts":99,"retry":{"id":"r","parent":"p","count":99,"edited":"e"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.Send(testQueue, "roundhouse/1 "+line+"\n"+body)
				w.Restart(nil).Run()
				w.checkSucceeded(t, "c1")
			})
		})
	}
}

// A message with a forged header that keeps failing has all attempts, and then becomes one dead letter.
func TestForgedHeadersAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.turn = func(context.Context) error { return errors.New("jammed") }
		w.Send(testQueue, "roundhouse/1 "+`{"messageId":"m","attempts":99}`+"\n"+good)
		w.Restart(nil).Run()
		dead := w.DeadLetters("turntable")
		if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonAttemptsExhausted || w.turns.Load() != engine.DefaultMaxAttempts-1 {
			t.Errorf("%d turns, %+v", w.turns.Load(), dead)
		}
	})
}

// Two messages with one copied header that keep failing become two dead letters.
func TestCopiedHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Restart(nil)
	for range 2 { // each is delivered again
		for _, body := range []string{"one", "two", "three"} {
			d := engine.Delivery{Queue: testQueue, ID: "id of " + body, DequeueCount: 1, Body: []byte(`roundhouse/1 {"messageId":"m","insertedAt":"2026-11-21T10:00:00Z"}` + "\n" + body)}
			if err := p.Handle(t.Context(), d); err != nil {
				t.Error(err)
			}
		}
	}
	bodies := map[string]int{}
	for _, l := range w.DeadLetters("turntable") {
		bodies[string(l.OriginalMessage)]++
	}
	if len(bodies) != 3 || bodies["one"]+bodies["two"]+bodies["three"] != 3 {
		t.Errorf("%v", bodies)
	}
}
