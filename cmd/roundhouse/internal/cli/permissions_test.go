package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/api"
)

// permissionOf returns the API's permission for a request, from its own routes.
func permissionOf(t *testing.T, request string) access.Permission {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	got := strings.Split(path, "/")
	var best *api.Route
	for _, r := range api.Routes() {
		want := strings.Split(r.Path, "/")
		fits := method == r.Method && len(got) == len(want)
		for i := 0; fits && i < len(want); i++ {
			fits = want[i] == got[i] || strings.HasPrefix(want[i], ":")
		}
		if fits && (best == nil || strings.Count(r.Path, ":") < strings.Count(best.Path, ":")) {
			best = &r
		}
	}
	if best == nil {
		t.Fatalf("the API has no route for %s", request)
	}
	return best.Permission
}

// Every command that calls the API documents its permissions: exactly those of its routes.
func TestCommandsStateTheirPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	entry := w.record(t, "run-1", now)
	var letters []string
	for i := range 5 {
		letters = append(letters, w.deadLetter(t, fmt.Sprint("m", i), "vault said no", now.Add(-time.Hour)))
	}
	bad, worse := w.add(t, "acme", `{"n":"bad"}`), w.add(t, "acme", `{"n":"bad","more":1}`)
	must(t, w.sweep(t.Context()))
	for _, id := range []string{"asks", "waits", "ends", "gone", "left"} {
		w.begin(t, id, map[bool]string{true: "ask"}[id == "asks"])
	}
	w.begin(t, "fails", "fail")
	called := map[string][]string{} // by the path of the command and the annotation
	for _, line := range []string{
		"whoami", "audit list", "audit export", "engines", "history list", "history show hmac " + entry.RowKey, "timeline run-1",
		"dlq list", "dlq show hmac " + letters[0], "dlq groups", "dlq counts", "dlq resolve hmac " + letters[0], "dlq retry hmac " + letters[1], "dlq expire hmac " + letters[2], "dlq note hmac " + letters[4] + " seen", "dlq assign hmac " + letters[4], "dlq assign hmac " + letters[4] + " a/b --name Bo", "dlq assign hmac " + letters[4] + " --release", "dlq retry hmac " + letters[3] + " --message " + file(t, `{"n":1}`),
		"dlq retry --all --engine hmac --yes", "dlq retry --all --engine tls --yes",
		"outbox list", "outbox show acme " + bad, "outbox metrics", "outbox backlog", "outbox circuits", "outbox retry acme " + bad, "outbox skip acme " + bad, "outbox replay acme " + bad,
		"outbox replay --all --status dead --yes", "task list", "task show asks 1-1", "task assign asks 1-1 a/b --name ann", "task reassign asks 1-1 a/c", "task release asks 1-1",
		"acknowledge hmac i-1 v2 gateway", "consumers hmac i-1", "task claim asks 1-1", "task complete asks 1-1 --answer {}", "orchestration list", "orchestration show waits", "orchestration show waits --rounds",
		"orchestration suspend waits", "orchestration resume waits", "orchestration raise waits decision", "orchestration restart waits", "orchestration cancel waits",
		"orchestration rewind fails", "orchestration terminate ends --yes", "orchestration purge ends --yes", "orchestration start approval --id more",
		"orchestration terminate left --yes", "orchestration purge left --force --reason lost --yes",
		"orchestration purge --all --older-than-days 0 --status failed --yes", "operation show nobody", "operation list", "operation wait nobody", "operation cancel nobody",
		"operation pause nobody", "operation resume nobody", "doctor",
		"registry add i-1", "registry list", "registry show i-1", "registry set i-1 --ring early", "registry drain i-1 --yes", "registry resume i-1",
		"registry unlock i-1 --yes", "registry remove i-1 --yes",
		"nodes", "schedule list", "schedule run hmac payments", "schedule run hmac --all --yes",
	} {
		w.called(t, called, line)
	}
	w.deadLetter(t, "again", "vault said no", now.Add(-time.Hour))
	w.called(t, called, "dlq expire --all --older-than-days 0 --yes")
	_ = worse

	a := &app{Main: Main{Lookup: environment(nil), Now: time.Now}}
	local := map[string]bool{"send": true, "drain": true, "poller": true, "completion": true, "help": true, "version": true}
	eachCommand(a.root(), func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "roundhouse ")
		first, _, _ := strings.Cut(path, " ")
		if c.HasSubCommands() || local[first] || path == "outbox backfill" {
			if c.Annotations[needsAnnotation] != "" {
				t.Errorf("%s says that it needs %q", path, c.Annotations[needsAnnotation])
			}
			return
		}
		if c.Annotations[needsAnnotation] == "" {
			t.Errorf("%s does not say what it needs", path)
		}
		for _, annotation := range []string{needsAnnotation, needsAllAnnotation, needsForceAnnotation, needsEditAnnotation} {
			stated := strings.Fields(c.Annotations[annotation])
			slices.Sort(stated)
			got := called[path+"|"+annotation]
			slices.Sort(got)
			if diff := cmp.Diff(stated, slices.Compact(got)); diff != "" && len(stated)+len(got) > 0 {
				t.Errorf("%s, %s (-stated +called):\n%s", path, annotation, diff)
			}
			for _, name := range stated {
				if !access.Permission(name).Known() || !strings.Contains(needed(c), name) {
					t.Errorf("%s needs %q, and its help says %q", path, name, needed(c))
				}
			}
		}
	})
}

// called runs a command, and records the API's permissions for its requests.
func (w *world) called(t *testing.T, called map[string][]string, line string) {
	t.Helper()
	w.mu.Lock()
	w.asked = nil
	w.mu.Unlock()
	args := strings.Fields(line)
	r := w.run(t, args...)
	if r.code != exitOK && !strings.Contains(line, "nobody") && line != "doctor" { // without storage here
		t.Errorf("%s: %d %s%s", line, r.code, r.out, r.err)
	}
	a := &app{Main: Main{Lookup: environment(nil), Now: time.Now}}
	found, _, err := a.root().Find(args)
	must(t, err)
	annotation := needsAnnotation
	switch {
	case slices.Contains(args, "--all"):
		annotation = needsAllAnnotation
	case slices.Contains(args, "--force"):
		annotation = needsForceAnnotation
	case slices.Contains(args, "--message"):
		annotation = needsEditAnnotation
	}
	key := strings.TrimPrefix(found.CommandPath(), "roundhouse ") + "|" + annotation
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, request := range w.asked {
		if p := permissionOf(t, request); p != access.Public {
			called[key] = append(called[key], string(p))
		}
	}
	if annotation == needsForceAnnotation { // the query selects it
		called[key] = append(called[key], string(access.OrchestrationsForcePurge))
	}
}

// A key uses the address for machines, and a token the other one, where the app checks the identity.
func TestAddresses(t *testing.T) { // it sets the environment of the process
	w := newWorld(t)
	signIn(t)
	w.want(t, 0, []string{"function-key"}, "whoami")
	ann := accesstest.Caller{Tenant: "home", Object: "ann", Name: "ann@example.com", AppRoles: []string{"Roundhouse.Reader"}}
	w.authenticating("the-token", ann)
	r := w.runWith(t, map[string]string{"ROUNDHOUSE_KEY": ""}, "whoami", "--entra", "api://app/.default")
	check(t, r, 0, []string{"person", ann.ID(), "ann@example.com", "reader", "history.read"})
	r = w.runWith(t, map[string]string{"ROUNDHOUSE_KEY": ""}, "dlq", "resolve", "hmac", w.deadLetter(t, "m", "no", time.Now()), "--entra", "api://app/.default")
	check(t, r, exitRefused, []string{"deadletters.decide", "(403 Forbidden): roundhouse whoami"})
	r = w.runWith(t, map[string]string{"ROUNDHOUSE_KEY": ""}, "history", "list")
	check(t, r, exitRefused, []string{"401 Unauthenticated", "az login"})
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff([]string{"GET /api/machine/me", "GET /api/me", "PATCH /api/dlq", "GET /api/history"}, shortened(w.outside)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// shortened returns requests without their targets.
func shortened(requests []string) (short []string) {
	for _, r := range requests {
		before, _, _ := strings.Cut(r, "/hmac/")
		short = append(short, before)
	}
	return short
}

// authenticating makes the host require Easy Auth, with a token for the caller.
func (w *world) authenticating(token string, who accesstest.Caller) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.platform = func(r *http.Request) {
		r.Header.Del("X-MS-CLIENT-PRINCIPAL")
		if r.Header.Get("Authorization") == "Bearer "+token {
			who.Sign(r)
		}
	}
}

// Texts of callers do not control the terminal of users who read them as JSON.
func TestHostileTextsAsJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, "waits", "")
	w.want(t, 0, nil, "orchestration", "suspend", "waits", "--reason", "\u009b31mx\u202ey\x7fz\u2028")
	for _, args := range [][]string{{"audit", "export"}, {"audit", "list", "-o", "json"}, {"orchestration", "show", "waits", "-o", "json"}, {"timeline", "c-waits", "-o", "json"}} {
		r := w.run(t, args...)
		if strings.ContainsAny(r.out, "\u009b\u202e\x7f\u2028") {
			t.Errorf("%v: %q", args, r.out)
		}
		if args[0] == "audit" && !strings.Contains(r.out, `\u009b31mx\u202ey\u007fz\u2028`) {
			t.Errorf("%v: %q", args, r.out)
		}
	}
}

// An export has every entry once, over all pages, newest first, a line each.
func TestAuditExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, "waits", "")
	for i := range 105 {
		verb := map[bool]string{true: "suspend", false: "resume"}[i%2 == 0]
		w.want(t, 0, nil, "orchestration", verb, "waits")
	}
	r := w.want(t, 0, nil, "audit", "export", "--target", "orchestrations/waits")
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	if len(lines) != 105 {
		t.Fatalf("%d lines", len(lines))
	}
	last := time.Now().Add(time.Hour)
	for _, line := range lines {
		var e struct {
			At        time.Time `json:"atUtc"`
			Outcome   string    `json:"outcome"`
			Principal string    `json:"principal"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.At.After(last) || e.Outcome != "Done" || e.Principal != "function-key" {
			t.Fatalf("%s: %v", line, err)
		}
		last = e.At
	}
}
