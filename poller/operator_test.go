package poller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
)

// place returns a cursor of the test source.
func place(n int) poller.Cursor { return pollertest.Row(n).Cursor }

// operations returns those that change an existing poller.
func operations(o poller.Operator) map[string]func(context.Context, poller.ChangeOptions) (poller.Change, error) {
	file := []byte(`{"cursor": {"kind": "integer", "value": 2}, "metadata": {"row_count": 1}, "note": "kept"}`)
	return map[string]func(context.Context, poller.ChangeOptions) (poller.Change, error){
		"beginning": func(ctx context.Context, how poller.ChangeOptions) (poller.Change, error) {
			return o.ResetToBeginning(ctx, name, how)
		},
		"cursor": func(ctx context.Context, how poller.ChangeOptions) (poller.Change, error) {
			return o.ResetToCursor(ctx, name, place(1), how)
		},
		"checkpoint": func(ctx context.Context, how poller.ChangeOptions) (poller.Change, error) {
			return o.ResetToCheckpoint(ctx, name, file, how)
		},
		"break": func(ctx context.Context, how poller.ChangeOptions) (poller.Change, error) {
			return o.BreakLease(ctx, name, how)
		},
		"retire": func(ctx context.Context, how poller.ChangeOptions) (poller.Change, error) {
			return o.Retire(ctx, name, how)
		},
		"accept": func(ctx context.Context, how poller.ChangeOptions) (poller.Change, error) {
			return o.AcceptFingerprint(ctx, name, (&pollertest.Source{}).Definition(), how)
		},
	}
}

func TestOperations(t *testing.T) {
	want := map[string]string{"beginning": "", "cursor": "1", "checkpoint": "2", "break": "3", "retire": "3", "accept": "3"}
	for what, where := range want {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.state.rewinds = true
				w.source.Append(3)
				operate := operations(w.operator())[what]
				if _, err := operate(t.Context(), poller.ChangeOptions{}); !errors.Is(err, poller.ErrNotFound) && what != "checkpoint" {
					t.Errorf("without a state: %v", err)
				}
				w.tick(w.process(nil, nil))
				before := w.document()

				dry, err := operate(t.Context(), poller.ChangeOptions{DryRun: true})
				if err != nil || dry.Applied || dry.After.Cursor().Value != where || w.document().Lease.Token != before.Lease.Token {
					t.Errorf("dry run: %+v, %v", dry, err)
				}
				done, err := operate(t.Context(), poller.ChangeOptions{})
				if err != nil || !done.Applied || done.Before.Cursor().Value != "3" {
					t.Errorf("%+v, %v", done, err)
				}
				after := w.document()
				if after.Cursor().Value != where || after.Lease.Token != before.Lease.Token+1 || after.Lease.Owner != "" {
					t.Errorf("%+v", after)
				}
				w.tick(w.process(nil, nil))
				w.state.rewinds = false
			})
		})
	}
}

// Under a live lease an operation is refused; forced, it fences the owner.
func TestOperationsUnderALiveLease(t *testing.T) {
	for _, what := range []string{"beginning", "cursor", "checkpoint", "break", "retire", "accept"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.state.rewinds = true
				w.source.Append(3)
				operate := operations(w.operator())[what]
				w.deliver = func(context.Context, poller.Delivery) error {
					if _, err := operate(t.Context(), poller.ChangeOptions{}); !errors.Is(err, poller.ErrLeaseLive) || !strings.Contains(err.Error(), "with token 1, until") {
						t.Errorf("got %v", err)
					}
					change, err := operate(t.Context(), poller.ChangeOptions{Force: true})
					if err != nil || !change.Fenced || change.After.Lease.Token != 2 {
						t.Errorf("%+v, %v", change, err)
					}
					return nil
				}
				if _, err := w.process(nil, nil).Tick(t.Context()); !errors.Is(err, poller.ErrLost) {
					t.Errorf("the owner: %v", err)
				}
			})
		})
	}
}

func TestRetiredPollersDoNotRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.state.rewinds = true
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		testenv.Must(w.operator().Retire(t.Context(), name, poller.ChangeOptions{}))(t)
		if result := w.tick(w.process(nil, nil)); !errors.Is(result.Skipped, poller.ErrRetired) {
			t.Errorf("%+v", result)
		}
		testenv.Must(w.operator().ResetToBeginning(t.Context(), name, poller.ChangeOptions{}))(t)
		if result := w.tick(w.process(nil, nil)); result.Rows != 3 || w.document().Lease.Token != 4 {
			t.Errorf("%+v", result)
		}
	})
}

func TestClone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		o := w.operator()
		testenv.Must(o.Clone(t.Context(), name, "copy", poller.ChangeOptions{}))(t)
		if _, err := o.Clone(t.Context(), name, "copy", poller.ChangeOptions{Force: true}); !errors.Is(err, poller.ErrExists) {
			t.Errorf("a second time: %v", err)
		}
		v, err := o.Show(t.Context(), "copy")
		if err != nil || v.Live {
			t.Fatal(err)
		}
		if d := v.Document; d.PollerName != "copy" || d.Lease.Token != 0 || d.Cursor().Value != "3" || d.Fingerprint != w.document().Fingerprint {
			t.Errorf("%+v", d)
		}
		if list, err := o.List(t.Context()); err != nil || cmp.Diff([]string{"copy", name}, list) != "" {
			t.Errorf("%v, %v", list, err)
		}
	})
}

// The token of a tombstone continues in a clone with its name.
func TestCloneOverATombstone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.operator()
	for _, file := range []string{name, "old"} {
		text := `{"version":1,"poller_name":"` + file + `","source_fingerprint":"","lease":{"owner_id":"","fencing_token":7}}`
		testenv.Must((poller.BlobStore{Blobs: w.state.Store}).Swap(t.Context(), file, []byte(text), ""))(t)
	}
	plain := poller.Operator{Store: poller.BlobStore{Blobs: w.state.Store}}
	testenv.Must(plain.Retire(t.Context(), "old", poller.ChangeOptions{}))(t)
	if _, err := plain.Clone(t.Context(), "old", "new", poller.ChangeOptions{}); !errors.Is(err, poller.ErrRetired) {
		t.Errorf("clone of a tombstone: %v", err)
	}
	testenv.Must(plain.Clone(t.Context(), name, "old", poller.ChangeOptions{}))(t)
	if v, err := o.Show(t.Context(), "old"); err != nil || v.Document.Lease.Token != 9 || v.Document.Retired {
		t.Errorf("%s, %v", v.Text, err)
	}
}

func TestRestore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.state.rewinds = true
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		v := testenv.Must(w.operator().Show(t.Context(), name))(t)
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		c, err := w.operator().ResetToCheckpoint(t.Context(), name, v.Text, poller.ChangeOptions{})
		if err != nil || c.After.Cursor().Value != "3" || c.After.Lease.Token != 3 {
			t.Errorf("%+v, %v", c, err)
		}
		// A copy that is newer than the state, and one for a missing state: the token continues from the higher one.
		newer := strings.Replace(string(v.Text), `"fencing_token": 1`, `"fencing_token": 90`, 1)
		if c, err = w.operator().ResetToCheckpoint(t.Context(), name, []byte(newer), poller.ChangeOptions{}); err != nil || c.After.Lease.Token != 91 {
			t.Errorf("%+v, %v", c, err)
		}
		testenv.OK(t, w.state.Delete(t.Context(), poller.DefaultContainer, name+".json"))
		if c, err = w.operator().ResetToCheckpoint(t.Context(), name, []byte(newer), poller.ChangeOptions{}); err != nil || c.After.Lease.Token != 91 || c.Before != nil {
			t.Errorf("%+v, %v", c, err)
		}
		for what, file := range map[string]string{
			"no JSON object":         "nonsense",
			"use reset-to-beginning": `{"version":1,"poller_name":"orders","lease":{"owner_id":"","fencing_token":7}}`,
			"is of poller other":     strings.Replace(string(v.Text), `"orders"`, `"other"`, 1),
			"the definition":         strings.Replace(string(v.Text), "sha256:", "sha256:0", 1),
			"it is no number":        `{"cursor":{"kind":"integer","value":"x"}}`,
			"not one of":             `{"cursor":{"kind":"number","value":"1"}}`,
			"newer version":          strings.Replace(string(v.Text), `"version": 1`, `"version": 2`, 1),
		} {
			if _, err := w.operator().ResetToCheckpoint(t.Context(), name, []byte(file), poller.ChangeOptions{}); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: got %v", what, err)
			}
		}
	})
}

// A damaged document is changed only by a forced restore; its token continues.
func TestRepair(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := poller.BlobStore{Blobs: w.state.Store}
	testenv.Must(store.Swap(t.Context(), name, []byte(`{"version":1, "lease": {"fencing_token": 41, `), ""))(t)
	if _, err := w.process(nil, nil).Tick(t.Context()); !errors.Is(err, poller.ErrCorrupt) {
		t.Errorf("a tick: %v", err)
	}
	o := poller.Operator{Store: store}
	file := []byte(`{"cursor":{"kind":"integer","value":"2"}}`)
	if v, err := o.Show(t.Context(), name); !errors.Is(err, poller.ErrCorrupt) || len(v.Text) == 0 {
		t.Errorf("show: %v", err)
	}
	if _, err := o.ResetToCheckpoint(t.Context(), name, file, poller.ChangeOptions{}); !errors.Is(err, poller.ErrCorrupt) {
		t.Errorf("not forced: %v", err)
	}
	if _, err := o.BreakLease(t.Context(), name, poller.ChangeOptions{Force: true}); !errors.Is(err, poller.ErrCorrupt) {
		t.Errorf("break: %v", err)
	}
	c, err := o.ResetToCheckpoint(t.Context(), name, file, poller.ChangeOptions{Force: true})
	if err != nil || c.After.Lease.Token != 42 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Operations resolve unknown outcomes, too.
func TestOperationsResolveAmbiguousWrites(t *testing.T) {
	for _, fault := range []faults.Fault{faults.Applied, faults.Unknown, faults.Precondition} {
		t.Run(fault.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.source.Append(1)
				w.tick(w.process(nil, nil))
				wait(time.Minute)
				plan := &faults.Plan{At: 2, Fault: fault}
				o := poller.Operator{Store: poller.BlobStore{Blobs: faults.Blobs(w.state, plan.Intercept)}}
				c, err := o.BreakLease(t.Context(), name, poller.ChangeOptions{})
				if err != nil || !c.Applied || w.document().Lease.Token != 2 {
					t.Errorf("%+v, %v, token %d", c, err, w.document().Lease.Token)
				}
			})
		})
	}
}

func TestResetToCursorTakesTheKind(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		w.state.rewinds = true
		c, err := w.operator().ResetToCursor(t.Context(), name, poller.Cursor{Value: "2"}, poller.ChangeOptions{})
		if err != nil || !c.After.Cursor().Equal(place(2)) {
			t.Errorf("%+v, %v", c, err)
		}
		for _, bad := range []poller.Cursor{{}, {Value: "x"}, {Kind: "timestamp+pk", Value: "2026-01-01T00:00:00Z"}, {Kind: "timestamp", Value: "now"},
			{Kind: "integer+pk", Value: "1", Tiebreaker: []byte("1")}} {
			if _, err := w.operator().ResetToCursor(t.Context(), name, bad, poller.ChangeOptions{}); !errors.Is(err, poller.ErrInvalid) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

// A position has exactly the key columns of the poller's definition; its number may have a fraction.
func TestResetToCursorKnowsTheKeys(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		w.state.rewinds = true
		definition := w.source.Definition()
		definition.Keys = []string{"id", "part"}
		o := w.operator()
		testenv.Must(o.AcceptFingerprint(t.Context(), name, definition, poller.ChangeOptions{}))(t)
		for keys, reason := range map[string]string{
			`{"nope":3}`: `"nope" is no key column`, `{"id":3}`: "the key column part is missing", `{"id":3,"part":null}`: "neither text nor number",
			`{"id":3,"part":[1]}`: "neither text nor number", `{"id":3,"part":"x","nope":1}`: "no key column",
		} {
			_, err := o.ResetToCursor(t.Context(), name, poller.Cursor{Kind: "integer+pk", Value: "1", Tiebreaker: []byte(keys)}, poller.ChangeOptions{})
			if !errors.Is(err, poller.ErrInvalid) || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v", keys, err)
			}
		}
		testenv.Must(o.ResetToCursor(t.Context(), name, poller.Cursor{Kind: "integer+pk", Value: "1", Tiebreaker: []byte(`{"id":3,"part":"x"}`)}, poller.ChangeOptions{}))(t)
		for _, keys := range []string{`{"id":"3","part":"x"}`, `{"id":3,"part":4}`, `{"id":"x","part":"x"}`} {
			if _, err := o.ResetToCursor(t.Context(), name, poller.Cursor{Value: "2", Tiebreaker: []byte(keys)}, poller.ChangeOptions{}); !errors.Is(err, poller.ErrInvalid) || !strings.Contains(err.Error(), "same type") {
				t.Errorf("%s: %v", keys, err)
			}
		}
		for _, value := range []string{"1", "-1.5", "0.000000000000000001"} {
			to := poller.Cursor{Kind: "integer+pk", Value: value, Tiebreaker: []byte(`{"ID":3,"part":"x"}`)}
			if c, err := o.ResetToCursor(t.Context(), name, to, poller.ChangeOptions{}); err != nil || !c.After.Cursor().Equal(to) {
				t.Errorf("%s: %+v, %v", value, c.After, err)
			}
		}
		for _, value := range []string{"1e9", "1.", ".5", "0x10", "1/2", "NaN"} {
			if _, err := o.ResetToCursor(t.Context(), name, poller.Cursor{Kind: "integer", Value: value}, poller.ChangeOptions{}); !errors.Is(err, poller.ErrInvalid) {
				t.Errorf("%s: %v", value, err)
			}
		}
	})
}

// Every time from a source is a valid reset position; a key as written in a document is the same position.
func TestPlacesAreKept(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for _, at := range []poller.Cursor{
			{Kind: "timestamp", Value: "2026-04-07"}, {Kind: "timestamp", Value: "2026-04-07T01:23:45.123456Z"}, {Kind: "timestamp", Value: "2026-04-07T01:23:45"},
			{Kind: "timestamp", Value: "2026-04-07 01:23:45.123456+00:00"}, {Kind: "timestamp", Value: "2026-04-07 01:23"},
			{Kind: "integer+pk", Value: "-0.125", Tiebreaker: []byte(`{"id":"<&> \u2028","n":1.50}`)},
		} {
			c, err := w.operator().ResetToCheckpoint(t.Context(), name, fmt.Appendf(nil, `{"cursor":{"kind":%q,"value":%q%s}}`, at.Kind, at.Value, tie(at)), poller.ChangeOptions{})
			if err != nil || !c.After.Cursor().Equal(at) {
				t.Errorf("%s: %v", at, err)
				continue
			}
			w.state.rewinds = true
			if got := w.document().Cursor(); !got.Equal(at) {
				t.Errorf("%s became %s", at, got)
			}
			if w.document().Checkpoint.UpdatedAt.IsZero() {
				t.Errorf("%s was written at no time", at)
			}
		}
	})
}

func tie(c poller.Cursor) string {
	if len(c.Tiebreaker) == 0 {
		return ""
	}
	return `,"tiebreaker":` + string(c.Tiebreaker)
}
