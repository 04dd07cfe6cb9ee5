package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/tables"
)

// madeEvent returns an event as this program makes them: its texts are clean, its payloads JSON.
func madeEvent(s *fuzzvalue.Source, levels int) event {
	kinds := []eventKind{executionStarted, activityCompleted, activityFailed, eventRaised, activityScheduled, childDetached, sideEffectRecorded, executionCompleted, executionFailed}
	e := storedEvent{Kind: kinds[s.Int(len(kinds)-1)], At: s.Int64(), Task: s.Int(1000), Name: s.Text(300), CorrelationID: s.Text(100), Attempt: s.Int(9), Due: s.Int64(),
		Version: s.Text(20), Held: s.Bool(), WillRetry: s.Bool(), Child: s.Text(100), Parent: s.Text(100), Signal: s.Text(100), Reason: s.Text(1000), Stream: s.Text(50), Sequence: s.Int(9)}
	if s.Bool() {
		e.Payload = compact(s.JSON())
	}
	if s.Int(9) == 0 {
		e.Payload = json.RawMessage(`"` + strings.Repeat("x", spillFrom-3+s.Int(2)) + `"`)
	}
	if s.Bool() {
		e.Carry = s.Bytes(200)
	}
	if s.Bool() || e.Kind == activityFailed || e.Kind == executionFailed {
		e.Failure = &Failure{Message: s.Text(2000), Code: s.Text(30), Permanent: s.Bool(), Stack: s.Text(100)}
	}
	if s.Int(3) == 0 {
		e.Call = &callRef{Execution: s.Int(9), Task: s.Int(9), Attempt: s.Int(9)}
	}
	if levels > 0 && s.Int(3) == 0 {
		e.Inherited = &inheritance{Suspended: s.Bool(), Commanded: s.Int64(), Signals: []string{s.Text(40)},
			Applied: []appliedHour{{Hour: s.Int64() / microsAnHour, Digests: s.Bytes(60)}}, Senders: senders{s.Text(30): {s.Int(9), s.Int64()}}}
		for range s.Int(3) {
			e.Inherited.Unread = append(e.Inherited.Unread, madeEvent(s, levels-1))
		}
	}
	return e.event().clean()
}

func madeRound(s *fuzzvalue.Source) round {
	r := round{More: s.Bool()}
	for range s.Int(4) {
		r.Learned = append(r.Learned, madeEvent(s, 1))
	}
	for range s.Int(4) {
		r.Decided = append(r.Decided, madeEvent(s, 1))
	}
	return r
}

// same compares stored values: empty equals missing, and the blob that holds a payload does not matter.
func same() cmp.Options {
	return cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(event{}, "Blob"), cmp.AllowUnexported(storedExecution{}), wholePayloads()}
}

// wholePayloads compares payloads as they are, not byte by byte, which takes seconds for a large one.
func wholePayloads() cmp.Option {
	filled := func(a, b json.RawMessage) bool { return len(a)+len(b) > 0 } // cmpopts.EquateEmpty compares the others
	return cmp.FilterValues(filled, cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }))
}

// A journal reads back every round that it commits unchanged, wherever it had to put it.
func FuzzRounds(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		w, ctx := newWorld(t), t.Context()
		j := &journal{tables: w.tables, blobs: w.blobs, table: "orchestrations", container: "orchestrations"}
		id := s.Name(100)
		if !validID(id) {
			return
		}
		want := madeRound(s)
		columns, _, err := j.encode(ctx, new(roundBuffers), id, 1, want)
		if errors.Is(err, tables.ErrTooLarge) {
			return
		}
		if err == nil {
			err = w.tables.Apply(ctx, "orchestrations", tables.Insert(tables.Entity{Key: tables.Key{Partition: tables.EscapeKey(id), Row: roundKey(1, 1)}, Properties: columns}))
		}
		rows, _, errRows := j.rows(ctx, id)
		if err := errors.Join(err, errRows, j.fillBlobs(ctx, id, rows)); err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		got := must(decodeRound(rows[0]))(t)
		for _, events := range [][]event{got.Learned, got.Decided} {
			for i := range events {
				noError(t, j.fetchOne(ctx, id, &events[i]))
			}
		}
		if diff := cmp.Diff(want, got, same()); diff != "" {
			t.Errorf("(-written +read):\n%s", diff)
		}
	})
}

// A signal that is sent is received unchanged, in its message or in a blob.
func FuzzSignals(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		types := []SignalType{TaskCompleted, TimerDue, ExternalSignal, SubWorkflowCompleted, InternalContinue}
		want := Signal{SignalID: s.Text(200), InstanceID: s.Name(100), RuntimeProvider: provider, Type: types[s.Int(len(types)-1)], ExpectedVersion: s.Int64(), WaitingToken: s.Text(20),
			OccurredAtUtc: s.Time()}
		if s.Bool() {
			at := s.Time()
			want.DueAtUtc = &at
		}
		if want.Type == ExternalSignal {
			want.Payload = Payload{Event: s.Text(300), Data: compact(s.JSON()), Stream: s.Text(20), Sequence: s.Int(9)}
		}
		for range s.Int(2) {
			want.Payload.Results = append(want.Payload.Results, activityResult{Execution: s.Int(9), Task: s.Int(99), Attempt: s.Int(9), Output: compact(s.JSON())})
		}
		if s.Int(3) == 0 {
			want.Payload.Reason = s.Text(60 << 10)
		}
		store := blobs.NewMemory()
		r := &Runtime{config: Config{Blobs: store, Container: "c3c"}}
		ctx := context.Background()
		noError(t, store.CreateContainer(ctx, "c3c"))
		if want.validate() != nil || !validID(want.InstanceID) {
			return
		}
		body := must(r.pack(ctx, want))(t)
		got, err := DecodeSignal(body)
		gone := false
		if err == nil {
			got, gone, err = r.unpack(ctx, got)
		}
		if err != nil || gone {
			t.Fatalf("%s: gone %v, %v", body, gone, err)
		}
		if got.Payload.Blob != "" {
			got.Payload.Blob = ""
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("(-sent +received):\n%s", diff)
		}
	})
}

// A batch of activities that is sent is received unchanged.
func FuzzBatches(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		want := activityBatch{RuntimeProvider: provider, Orchestration: s.Name(100), Execution: 1 + s.Int(9), CorrelationID: s.Text(50)}
		for range 1 + s.Int(3) {
			want.Activities = append(want.Activities, activityCall{Task: s.Int(99), Name: s.Text(50), Input: compact(s.JSON()), Attempt: s.Int(9), Timeout: s.Int64(), Progress: compact(s.JSON())})
		}
		if !validID(want.Orchestration) {
			return
		}
		body := must(marshal(want))(t)
		got := must(decodeBatch(body))(t)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-sent +received):\n%s", diff)
		}
	})
}

// The records of signals and senders are passed on unchanged, by the hour.
func FuzzHeard(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC).UnixMicro()
		var m receivedSignals
		ids := map[string]int64{}
		for range s.Int(40) {
			id, at := s.Text(60), now-int64(s.Int(100*3600))*1_000_000
			if id != "" {
				m.record(event{Kind: eventRaised, Signal: broughtBy(id), At: at})
				ids[id] = max(ids[id], at)
			}
		}
		var left inheritance
		m.saveTo(&left, now)
		text, err := json.Marshal(left)
		var read inheritance
		noError(t, errors.Join(err, json.Unmarshal(text, &read)))
		var next receivedSignals
		next.restore(&read, now)
		for id, at := range ids {
			if recent := at > now-SignalHorizon.Microseconds(); recent && !next.contains(id) {
				t.Errorf("%q of %s is not known", id, fmt.Sprint(time.Duration(now-at)*time.Microsecond))
			}
			if old := at < now-SignalHorizon.Microseconds()-microsAnHour; old && next.contains(id) && id != m.last {
				t.Errorf("%q is still known", id)
			}
		}
	})
}

// Values that can be stored are exported and replayed, too.
func FuzzExports(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		value := fuzzvalue.New(data).JSON()
		if payload.Check(value) != nil {
			return
		}
		o := NewOrchestrator("test", func(ctx *Context, in json.RawMessage) (json.RawMessage, error) {
			return SideEffect(ctx, "value", func() json.RawMessage { return in })
		})
		w := newWorld(t)
		rt := w.runtime(t, nil, []AnyOrchestrator{o}, nil)
		out := mustRun(t, rt, Start{ID: "a", Orchestrator: "test", Input: value})
		if out.Status != Completed || string(out.Output) != string(compact(value)) {
			t.Fatalf("%s %s of %s", out.Status, out.Output, value)
		}
		history, err := rt.Export(t.Context(), "a")
		if err := errors.Join(err, Replay(o, history)); err != nil {
			t.Error(err)
		}
	})
}
