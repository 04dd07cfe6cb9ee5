package tls_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// Two certificates, each with targets of its own and one that serves both: all of them serve the right ones, and the
// runs of one do not affect the other.
func TestTwoCertificates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 3)
	w.assigned = [][]string{{"a.example.com"}, {"b.example.com"}, {"a.example.com", "b.example.com"}}
	p := w.pipeline(t)
	for round, want := range []int{2, 2} {
		for _, name := range []string{"a.example.com", "b.example.com"} {
			id := strings.Repeat(name[:1], round+1)
			entries := w.handle(t, p, id, message(id, `{"domain":"`+name+`"}`))
			if got := rows(entries); got != "distribute Succeeded, distribute Succeeded, renew Succeeded" {
				t.Errorf("%s, run %d: %s", name, round+1, got)
			}
		}
		if told := len(w.targets[2].Told()); told != want {
			t.Errorf("the one that serves both was told %d times", told)
		}
	}
	for i, want := range []int{1, 1} {
		if told := len(w.targets[i].Told()); told != want {
			t.Errorf("target %d was told %d times", i, told)
		}
	}
}

// A run without targets records that in the history, and possibly served versions stay enabled, however old their
// successor is.
func TestACertificateWithoutTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 1)
	at := time.Now()
	w.now, w.vault.Now = func() time.Time { return at }, func() time.Time { return at }
	w.handle(t, w.pipeline(t), "c1", message("c1", `{"domain":"www.example.com"}`))
	w.assigned = [][]string{{"other.example.com"}}
	for _, id := range []string{"c2", "c3"} {
		at = at.Add(25 * time.Hour)
		entries := w.handle(t, w.pipeline(t), id, message(id, `{"domain":"www.example.com","force":true}`))
		said := entries[len(entries)-1]
		if got := rows(entries); got != "distribute Succeeded, renew Succeeded" || said.Operation != "distribute" || !strings.Contains(string(said.Output), "no target is known") {
			t.Errorf("%s: %s %s", id, got, said.Output)
		}
	}
	if got := w.versions(t); len(got) != 3 {
		t.Errorf("%d versions are enabled", len(got))
	}
}

// The next run notifies a later target, and the previous version is disabled only when that target serves the new
// one.
func TestATargetThatComesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 2)
	at := time.Now()
	w.now, w.vault.Now = func() time.Time { return at }, func() time.Time { return at }
	w.assigned = [][]string{{domain}, {"other.example.com"}}
	for _, id := range []string{"c1", "c2"} {
		w.handle(t, w.pipeline(t), id, message(id, `{"domain":"www.example.com","force":true}`))
		at = at.Add(time.Hour)
	}
	w.assigned = nil
	w.targets[1].Answer(422)
	at = at.Add(30 * time.Hour)
	if w.handle(t, w.pipeline(t), "c3", message("c3", `{"domain":"www.example.com"}`)); len(w.versions(t)) != 2 {
		t.Error("a version was disabled that the new target may serve")
	}
	w.targets[1].Answer()
	w.handle(t, w.pipeline(t), "c4", message("c4", `{"domain":"www.example.com"}`))
	if len(w.versions(t)) != 1 || len(w.targets[1].Told()) != 1 {
		t.Errorf("%d versions, the new target was told %d times", len(w.versions(t)), len(w.targets[1].Told()))
	}
}

// Errors in a list of targets, such as ambiguous entries, are reported at start.
func TestValidateTargets(t *testing.T) {
	t.Parallel()
	target := func(id string, certificates ...string) tls.Target {
		return tls.Target{ID: id, Address: id + ".example.com:443", NotifyURL: "https://" + id + ".example.com/", Certificates: certificates}
	}
	named := target("x", "a.example.com", "b.example.com")
	named.ServerName = "a.example.com"
	for _, c := range []struct {
		what     string
		list     tls.StaticTargets
		rotated  []string
		complain []string // one per line
	}{
		{"the one certificate goes without saying", tls.StaticTargets{target("x")}, []string{"a.example.com"}, nil},
		{"all is named", tls.StaticTargets{target("x", "a.example.com"), target("y", "b.example.com", "a.example.com")}, []string{"a.example.com", "b.example.com"}, nil},
		{"nothing is on schedule", tls.StaticTargets{target("x", "a.example.com")}, nil, nil},
		{"two certificates", tls.StaticTargets{target("x"), target("y", "a.example.com")}, []string{"a.example.com", "b.example.com"}, []string{"[0]: certificates is missing"}},
		{"none on schedule, none named", tls.StaticTargets{target("x")}, nil, []string{"[0]: certificates is missing"}},
		{"a misspelt name", tls.StaticTargets{target("x", "a.exmaple.com")}, []string{"a.example.com"}, []string{`[0]: certificates: "a.exmaple.com" is not renewed on schedule`}},
		{"no name", tls.StaticTargets{target("x", "A B")}, nil, []string{"[0]: certificates:"}},
		{"one name for several", tls.StaticTargets{named}, nil, []string{"[0]: serverName"}},
		{"an id twice, and an address that is none", tls.StaticTargets{target("x", "a.example.com"), {ID: "x", Address: "y", Certificates: []string{"a.example.com"}}}, nil,
			[]string{"[1]: its address", `[1]: the id "x" is there twice`}},
	} {
		err := c.list.Validate(c.rotated)
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		if len(lines) != len(c.complain) {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		for i, want := range c.complain {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%s: %v, want %s", c.what, err, want)
			}
		}
	}
}

// An attempt that finds a target serving after the notice of a previous attempt reports that notice.
func TestWhatAnEarlierAttemptSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 1)
	w.sends(t)
	w.targets[0].Late(true)
	in := tls.DistributeInput{Target: w.list()[0], Certificate: w.renew(t, input("j1")).Certificate}
	twice := orchestrator.NewActivity("distribute", w.steps(t).Distribute, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 2, FirstInterval: time.Millisecond}))
	run := orchestrator.NewOrchestrator("run", func(ctx *orchestrator.Context, in tls.DistributeInput) (tls.DistributeOutput, error) {
		return twice.Call(ctx, in).Await()
	})
	rt, err := orchestrator.New(orchestrator.Config{Tables: w.tables, Blobs: blobs.NewMemory(), Queues: queues.NewMemory(), Log: slog.New(slog.DiscardHandler),
		Orchestrators: []orchestrator.AnyOrchestrator{run}, Activities: []orchestrator.AnyActivity{twice}})
	if err != nil {
		t.Fatal(err)
	}
	start, err1 := json.Marshal(in)
	if err := errors.Join(err1, rt.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	done, err := rt.Run(t.Context(), orchestrator.Start{ID: "o", Orchestrator: "run", Input: start, CorrelationID: "c"})
	var out tls.DistributeOutput
	if err := errors.Join(err, json.Unmarshal(done.Output, &out)); err != nil || !out.Told || out.Sent == nil || !cmp.Equal(out.Sent.SignedBy, []string{"k1"}) || len(w.targets[0].Told()) != 1 {
		t.Errorf("told %d times: %s, %v", len(w.targets[0].Told()), done.Output, err)
	}
}
