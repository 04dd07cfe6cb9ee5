package spn_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/internal/graphfake"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/entra"
)

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		test(t, w)
		w.checkSecrets(t)
	})
}

// rotated leaves the password of an earlier slot behind.
func rotated(t *testing.T, w *world, slot string) spn.RotateOutput {
	t.Helper()
	out, err := w.steps(t).Rotate(t.Context(), spn.RotateInput{ApplicationID: application, Slot: slot, JobID: "before"})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // virtual: lists show it
	return out
}

// orphaned leaves a password of the slot behind whose value is lost.
func orphaned(_ *testing.T, w *world) { w.graph.Add(application, "roundhouse/"+owner+"/"+slot) }

// From the message in the queue to the rows of the history, with an older password to replace.
func TestRotation(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		older, began := rotated(t, w, "2026-10"), time.Now()
		w.run(message)
		w.checkSettled(t)
		if took := time.Since(began); took < overlap+removeAfter || took > overlap+removeAfter+10*time.Minute {
			t.Errorf("the older password was removed after %s, want %s after the new one worked", took, overlap+removeAfter)
		}
		if live := w.graph.Live(application); live[older.KeyID] != "" {
			t.Errorf("the older password is still there: %v", live)
		}
		e := w.history()[0]
		if e.InstanceID != engine.PublisherInstance || !strings.Contains(string(e.Output), `"keyId"`) || !strings.Contains(string(e.Input), application) {
			t.Errorf("history: %+v", e)
		}
		before := w.graph.Count("/addPassword")
		w.run(message)
		if w.graph.Count("/addPassword") != before {
			t.Error("a message whose run had succeeded made another password")
		}
	})
}

// Errors of Entra ID, and runs that succeed despite them.
func TestTroubleWithEntra(t *testing.T) {
	t.Parallel()
	cases := []struct {
		what    string
		prepare func(t *testing.T, w *world)
	}{
		{"throttled, for longer than a client waits by itself", func(_ *testing.T, w *world) {
			w.graph.Inject(graphfake.Fault{Action: "/addPassword", Status: 429, RetryAfter: 50 * time.Second})
		}},
		{"the application is found late", func(_ *testing.T, w *world) {
			w.graph.FoundAfter = 2 * time.Minute
			w.graph.AddApplication(application)
			w.foreign = w.graph.Add(application, "by hand")
		}},
		{"a password is listed late", func(_ *testing.T, w *world) { w.graph.ListedAfter = 5 * time.Minute }},
		{"a password is accepted late", func(_ *testing.T, w *world) { w.graph.AcceptedAfter = 9 * time.Minute }},
		{"accepted later than an attempt waits", func(_ *testing.T, w *world) { w.graph.AcceptedAfter = 15 * time.Minute }},
		{"accepted by one replica, then not", func(_ *testing.T, w *world) {
			ok := graphfake.Fault{Action: "/token", Status: 200, Body: "{}"}
			w.graph.Inject(ok, ok, graphfake.Fault{Action: "/token", Status: 401, Body: `{"error_codes":[7000215]}`})
		}},
		{"an answer with a password is cut off", func(_ *testing.T, w *world) {
			w.graph.Inject(graphfake.Fault{Action: "/addPassword", Applied: true, Status: 200, Body: `{"keyId":"`})
		}},
		{"an orphan where it does not fit", func(t *testing.T, w *world) {
			w.graph.Limit = 3
			rotated(t, w, "2026-10")
			orphaned(t, w)
			time.Sleep(time.Minute)
		}},
		{"an answer is lost where no other fits", func(t *testing.T, w *world) {
			w.graph.Limit, w.graph.ListedAfter = 3, 18*time.Second
			rotated(t, w, "2026-10")
			w.graph.Inject(graphfake.Fault{Action: "/addPassword", Applied: true})
		}},
		{"a password of the slot removed by hand, long ago", func(t *testing.T, w *world) {
			w.graph.Remove(application, rotated(t, w, slot).KeyID)
			time.Sleep(time.Hour)
		}},
		{"the version of the slot disabled by hand", func(t *testing.T, w *world) {
			out := rotated(t, w, slot)
			if err := w.vault.Disable(t.Context(), out.SecretName, out.Version); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *world) {
				c.prepare(t, w)
				w.run(message)
				w.checkSettled(t)
			})
		})
	}
}

// Failures that end in the dead letters, and the remaining state: no older password is removed, and nothing is
// announced unless stated.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	cases := []struct {
		what    string
		body    string
		prepare func(t *testing.T, w *world)
		reason  engine.Reason
		says    string
		made    int // passwords of the slot
	}{
		{"no application", `{"correlationId":"c1"}`, nil, engine.ReasonPermanent, "applicationId", 0},
		{"another operation", `{"correlationId":"c1","operation":"notify","input":{"applicationId":"` + application + `"}}`, nil, engine.ReasonPermanent, "unknown operation", 0},
		{"unknown fields", `{"correlationId":"c1","input":{"applicationId":"` + application + `","secretName":"x"}}`, nil, engine.ReasonPermanent, "secretName", 0},
		{"an application that is a path", `{"correlationId":"c1","input":{"applicationId":"x')/owners('y"}}`, nil, engine.ReasonPermanent, "UUID", 0},
		{"no such application", strings.ReplaceAll(message, application[:8], "ffffffff"), nil, engine.ReasonAttemptsExhausted, "Request_ResourceNotFound", 0},
		{"too many passwords", message, func(_ *testing.T, w *world) { w.graph.Limit = 1 }, engine.ReasonPermanent, "maximum of 1", 0},
		{"never accepted", message, func(_ *testing.T, w *world) { w.graph.AcceptedAfter = 365 * 24 * time.Hour }, engine.ReasonAttemptsExhausted, "AADSTS7000215", 1},
		{"a disabled application", message, func(_ *testing.T, w *world) { w.graph.Disable(application) }, engine.ReasonPermanent, "AADSTS7000112", 1},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *world) {
				older := ""
				if c.prepare == nil {
					older = rotated(t, w, "2026-10").KeyID
				} else {
					c.prepare(t, w)
				}
				w.run(c.body)
				dead := w.deadLetters()
				if len(dead) != 1 || dead[0].DetectedReason != c.reason || !strings.Contains(dead[0].ErrorMessage, c.says) || dead[0].OriginalQueue != spn.Queue {
					t.Fatalf("dead letters: %+v", dead)
				}
				if failed := w.history(); len(failed) == 0 || failed[len(failed)-1].RunStatus != engine.StatusFailed {
					t.Errorf("history: %+v", failed)
				}
				live := w.graph.Live(application)
				if older != "" && live[older] == "" || live[w.foreign] == "" || len(w.ours()) != c.made+min(len(older), 1) {
					t.Errorf("passwords: %v, of ours %v", live, w.ours())
				}
				if len(w.Published()) != 0 {
					t.Errorf("events: %+v", w.Published())
				}
				fmt.Fprintf(w, "%+v %s", dead, application)
				if len(w.graph.Values()) < 2 {
					w.graph.Add(application, "by hand") // so that checkSecrets has a value to search for
				}
			})
		})
	}
}

// The engine decides as when the golden histories were written; ROUNDHOUSE_GOLDEN=write writes them.
func TestGolden(t *testing.T) {
	t.Parallel()
	for file, prepare := range map[string]func(t *testing.T, w *world){
		"testdata/golden.json": func(*testing.T, *world) {},
		"testdata/stages.json": func(t *testing.T, w *world) { rotated(t, w, "2026-10") },
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *world) {
				prepare(t, w)
				checkGolden(t, w, file)
			})
		})
	}
}

func checkGolden(t *testing.T, w *world, file string) {
	t.Helper()
	w.run(message)
	exported, err := w.Runtime().Export(t.Context(), spn.Engine+"-c1")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ROUNDHOUSE_GOLDEN") == "write" {
		if err := os.WriteFile(file, append(exported, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v; run the test once with ROUNDHOUSE_GOLDEN=write", err)
	}
	d := spn.Definition(w.steps(t))
	for _, history := range [][]byte{golden, exported} {
		if err := orchestrator.Replay(d.Orchestrator, history); err != nil {
			t.Error(err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := spn.New(spn.Config{Overlap: time.Hour, Lifetime: time.Hour})
	for _, field := range []string{"Directory", "Login", "Vault", "Values", "Owner", "Arrivals", "EventID", "Lifetime"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("New of nothing = %v, want it to name %s", err, field)
		}
	}
}

var _ spn.Directory = (*entra.Graph)(nil)
var _ spn.Login = (*entra.Login)(nil)
