package poller_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

// A change with a request id is made once, despite faults of storage and repeated requests; the id of another change is
// refused, and the latest eight are stored.
func TestRequestsAreMadeOnce(t *testing.T) {
	for _, fault := range faults.Faults() {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.state.rewinds = true
				w.source.Append(3)
				w.tick(w.process(nil, nil))
				before := w.document().Lease.Token
				how := poller.ChangeOptions{Request: poller.Request{ID: "first", Digest: "a"}}
				plan := &faults.Plan{At: 2, Fault: fault} // the write
				_, err := poller.Operator{Store: poller.BlobStore{Blobs: faults.Blobs(w.state, plan.Intercept)}}.ResetToCursor(t.Context(), name, place(1), how)
				applied := w.document().Lease.Token == before+1
				again, againErr := w.operator().ResetToCursor(t.Context(), name, place(1), how)
				if againErr != nil || !again.Applied || again.Repeated != applied || w.document().Lease.Token != before+1 || w.document().Cursor().Value != "1" {
					t.Errorf("at first %v; again %+v, %v", err, again, againErr)
				}
				other := poller.ChangeOptions{Request: poller.Request{ID: "first", Digest: "b"}}
				if _, err := w.operator().Retire(t.Context(), name, other); !errors.Is(err, poller.ErrRequestReused) || w.document().Retired {
					t.Errorf("another change of the same id: %v", err)
				}
				for n := range 20 {
					how := poller.ChangeOptions{Request: poller.Request{ID: fmt.Sprint(n), Digest: "a"}}
					testenv.Must(w.operator().BreakLease(t.Context(), name, how))(t)
				}
				if all := w.document().Requests; len(all) != 8 || all[7].ID != "19" || all[7].At.IsZero() {
					t.Errorf("%+v", all)
				}
				if again, err := w.operator().BreakLease(t.Context(), name, poller.ChangeOptions{DryRun: true, Request: poller.Request{ID: "dry", Digest: "a"}}); err != nil || again.Applied || w.document().Requests[7].ID != "19" {
					t.Errorf("a dry run: %+v, %v", again, err)
				}
			})
		})
	}
}

// A poller that has only failed so far is new to a clone; one that has run is not.
func TestCloneOntoOneThatHasOnlyFailed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		w.tick(w.process(nil, nil))
		testenv.Must(w.operator().BreakLease(t.Context(), name, poller.ChangeOptions{Request: poller.Request{ID: "of the other", Digest: "a"}}))(t)
		failures := poller.TickFailures{Store: w.store(), Poller: "copy"}
		testenv.OK(t, failures.Add(t.Context(), errors.New("no connection string")))
		if _, err := w.operator().Clone(t.Context(), name, "copy", poller.ChangeOptions{}); err != nil {
			t.Error(err)
		}
		v, err := w.operator().Show(t.Context(), "copy")
		if err != nil || v.Document.TickFailure != nil || v.Document.Cursor().Value != "3" || len(v.Document.Requests) != 0 {
			t.Errorf("%s, %v", v.Text, err)
		}
		if _, err := w.operator().Clone(t.Context(), name, "copy", poller.ChangeOptions{}); !errors.Is(err, poller.ErrExists) {
			t.Errorf("a second time: %v", err)
		}
	})
}
