package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
)

// eachCommand walks all commands.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, below := range c.Commands() {
		eachCommand(below, visit)
	}
}

// Every help text fits a terminal of 80 columns, and is complete.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	n := 0
	a := &app{Main: Main{Lookup: environment(nil), Now: time.Now}}
	eachCommand(a.root(), func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		var out bytes.Buffer
		m := Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Lookup: environment(nil)}
		if code := m.Run(t.Context(), append(path, "--help")); code != exitOK {
			t.Errorf("%v: exit code %d", path, code)
		}
		n++
		for line := range strings.Lines(out.String()) {
			if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > helpWidth {
				t.Errorf("%v: %d columns: %s", path, width, line)
			}
			if line != "\n" && strings.TrimRight(line, " \n") == "" {
				t.Errorf("%v: a line of blanks", path)
			}
		}
		if strings.Contains(out.String(), "(default )") || strings.Contains(out.String(), "(default -1)") {
			t.Errorf("%v: a default that nobody can use\n%s", path, out.String())
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || !strings.Contains(out.String(), "Usage:") {
			t.Errorf("%v: %q\n%s", path, c.Short, out.String())
		}
	})
	if n < 50 {
		t.Errorf("only %d commands", n)
	}
}

// Every command that shows or changes something works with the real API; commands on storage have tests of their own.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	entry := w.record(t, "run-1", now)
	retried, resolved, expired := w.deadLetter(t, "m1", "vault said no", now.Add(-time.Hour)), w.deadLetter(t, "m2", "vault said \x1b[31mno", now), w.deadLetter(t, "m3", "other", now)
	good, bad := w.add(t, "acme", `{"n":1}`), w.add(t, "acme", `{"n":"bad"}`)
	skipped := w.add(t, "blue", `{"n":"bad"}`)
	must(t, w.sweep(t.Context()))
	w.begin(t, "asks", "ask")
	w.begin(t, "waits", "")
	w.begin(t, "ends", "")
	w.begin(t, "fails", "fail")

	steps := []struct {
		args  string
		code  int
		texts []string
	}{
		{"engines", 0, []string{"hmac", "hmac-rotation-queue", "rotate"}},
		{"history list", 0, []string{"CORRELATION ID", "run-1", "Succeeded", "1234"}},
		{"history list --status failed --from 2h", 0, []string{"There are no such entries."}},
		{"history list --engine nobody", 2, []string{"Use one of hmac, tls"}},
		{"history list --status maybe", 2, []string{"use one of Succeeded, Failed"}},
		{"history show hmac " + entry.RowKey, 0, []string{"correlationId", `{"version":"v2"}`}},
		{"history show hmac nothing", 3, []string{"404 NotFound"}},
		{"timeline run-1", 0, []string{"rotate of i-1 in 1234 ms"}},
		{"timeline nobody", 3, []string{"404 NotFound"}},
		{"dlq list", 0, []string{"ROW KEY", retried, "vault said \uFFFD[31mno"}},
		{"dlq show hmac " + resolved, 0, []string{"originalMessage", `{"correlationId":"m2"}`}},
		{"dlq groups --status pending", 0, []string{"SIGNATURE", "vault said no"}},
		{"dlq counts", 0, []string{"PENDING", "hmac"}},
		{"dlq note hmac " + retried + " asked", 0, []string{"notes", "asked"}},
		{"dlq assign hmac " + retried + " ann --name Ann", 0, []string{"ann", "Ann"}},
		{"dlq assign hmac " + retried + " --release", 0, []string{"rowKey"}},
		{"dlq retry hmac " + retried, 0, []string{"messageId", "Resolved"}},
		{"dlq resolve hmac " + resolved + " --notes done", 0, []string{"Resolved", "done"}},
		{"dlq expire hmac " + expired, 0, []string{"Expired"}},
		{"dlq expire hmac " + resolved, 4, []string{"409 InvalidState"}},
		{"outbox list --tenant acme", 0, []string{"processed", "dead", "gone for good", good}},
		{"outbox show acme " + bad, 0, []string{"attempts", "gone for good"}},
		{"outbox show acme " + skipped, 3, nil},
		{"outbox metrics", 0, []string{"backlogSize"}},
		{"outbox backlog --tenant nobody", 0, []string{"items"}},
		{"outbox circuits", 0, []string{"items", "crm", "status 503", "web-2-411"}},
		{"outbox retry acme " + bad, 0, []string{"retry"}},
		{"outbox backlog", 0, []string{"items", "destination", "sink", "waiting"}},
		{"outbox skip blue " + skipped, 0, []string{"skip"}},
		{"outbox replay acme " + good, 0, []string{"replay"}},
		{"outbox replay acme", 2, []string{"TENANT ID"}},
		{"task list", 0, []string{"asks", "approver", "approve"}},
		{"task show asks 1-1", 0, []string{"created"}},
		{"task assign asks 1-1 ann --note please", 0, []string{"Assigned", "ann"}},
		{"task reassign asks 1-1 bob", 0, []string{"bob"}},
		{"task release asks 1-1", 0, []string{"Created"}},
		{"task claim asks 1-1", 0, []string{"Assigned"}},
		{"task complete asks 1-1", 2, []string{"answer"}},
		{"task complete asks 1-1 --answer {\"yes\":true}", 0, []string{"Completed"}},
		{"acknowledge hmac i-1 v2 gateway", 0, []string{"gateway", "v2", "function-key"}},
		{"acknowledge hmac i-1 v2 nobody", 4, []string{"422 NotAcknowledgeable", "register it in ROUNDHOUSE_ROTATIONS"}},
		{"acknowledge hmac i-1 v3 gateway", 4, []string{"unknown version"}},
		{"acknowledge hmac i-2 v2 gateway", 3, []string{"ROUNDHOUSE_ROTATIONS"}},
		{"consumers hmac i-1", 0, []string{"gateway", "v2"}},
		{"nodes", 0, []string{"web-2-411", "alive", "11-21 12:00:00", "4f0c2d9", "web-2-411 at 11-21 11:00:00, 3 orchestrations", "not finished"}},
		{"nodes --state alive", 0, []string{"web-2-411"}},
		{"nodes --state gone", 0, []string{"No such process"}},
		{"nodes --state dead", 2, []string{"alive, gone, taken"}},
		{"schedule list", 0, []string{"hmac/schedule", "payments", "0 11 2 * * *", "02:11:00"}},
		{"schedule list --item nobody", 0, []string{"no such schedules"}},
		{"schedule run hmac payments", 0, []string{"messages", "correlationId", "payments"}},
		{"schedule run hmac", 2, []string{"Say which is meant"}},
		{"schedule run hmac nobody", 3, nil},
		{"schedule run hmac --all", 4, []string{"add --yes"}},
		{"schedule run hmac --all --yes", 0, []string{"payments"}},
		{"orchestration list --status running", 0, []string{"waits", "Event"}},
		{"orchestration list --prefix fail", 0, []string{"Failed"}},
		{"orchestration show waits", 0, []string{"pendingEvents", "decision"}},
		{"orchestration show waits --rounds", 0, []string{"ExecutionStarted"}},
		{"orchestration show nobody", 3, nil},
		{"orchestration suspend waits --reason lunch", 0, []string{"waits"}},
		{"orchestration show waits", 0, []string{"Suspended"}},
		{"orchestration resume waits", 0, nil},
		{"orchestration raise waits decision --input true", 0, []string{"waits"}},
		{"orchestration show waits", 0, []string{"Completed", "decided"}},
		{"orchestration raise waits decision", 4, []string{"409 InvalidState"}},
		{"orchestration restart waits", 0, []string{"waits"}},
		{"orchestration cancel waits", 0, []string{"waits"}},
		{"orchestration show waits", 0, []string{"Canceled"}},
		{"orchestration rewind fails", 0, []string{"fails"}},
		{"orchestration terminate ends", 4, []string{"add --yes", "before: approval, Running, waits for Event"}},
		{"orchestration terminate ends --yes --reason why", 0, []string{"before: approval, Running"}},
		{"orchestration show ends", 0, []string{"Terminated"}},
		{"orchestration start approval --id new --input \"wait\"", 0, []string{"new"}},
		{"orchestration start approval --id new --input \"else\"", 4, []string{"409 OrchestrationExists"}},
		{"orchestration start nobody", 2, []string{"400 UnknownOrchestrator"}},
		{"orchestration purge new --yes", 4, []string{"409"}},
		{"orchestration purge ends --yes", 0, []string{"before: approval, Terminated", "ends"}},
		{"orchestration show ends", 3, nil},
		{"registry list", 0, []string{"There are no such instances"}},
		{"registry add /i/1 --tenant t1 --ring early --events https://a.example.org/x", 0, []string{"/i/1", "https://a.example.org/x"}},
		{"registry add /i/1 --tenant t1 --ring early --events https://a.example.org/x", 0, []string{"registryVersion"}},
		{"registry add /i/1 --ring late", 4, []string{"409 InstanceExists"}},
		{"registry add /i/2 --patch [1]", 2, []string{"no JSON object"}},
		{"registry list --ring early", 0, []string{"INSTANCE", "/i/1", "t1"}},
		{"registry set /i/1", 2, []string{"what is to change"}},
		{"registry set /i/1 --ring late --if-version 1", 0, []string{"late"}},
		{"registry set /i/1 --ring early --if-version 1", 4, []string{"412"}},
		{"registry set /i/1 --patch {\"version\":\"2\"}", 2, []string{"engine update writes"}},
		{"registry set /i/1 --events https://b.example.org/x --patch {\"endpoints\":{\"more\":1}}", 0, []string{"b.example.org", "more"}},
		{"registry drain /i/1 --for 2h", 4, []string{"add --yes", "before: not locked", "for 2h0m0s"}},
		{"registry drain /i/1 --for 2h --yes --reason moved", 0, []string{"drain/function-key"}},
		{"registry list --locked true", 0, []string{"drained until", "function-key"}},
		{"registry unlock /i/1 --yes", 4, []string{"409", "resume it"}},
		{"registry resume /i/1", 0, []string{"/i/1"}},
		{"registry show /i/1", 0, []string{"registryVersion"}},
		{"registry remove /i/1 --dry-run", 0, []string{"nothing else is removed", "Dry run"}},
		{"registry remove /i/1 --yes", 0, []string{"remains"}},
		{"registry show /i/1", 3, nil},
		{"operation show nobody", 3, nil},
		{"operation cancel nobody", 3, nil},
		{"operation pause nobody", 3, nil},
		{"operation resume nobody", 3, nil},
		{"operation list --status paused", 0, []string{"There are no such operations."}},
		{"outbox backfill --slice 0", 2, []string{"--slice 0: use 1 to"}},
		{"operation list --status gone", 2, []string{"use one of Open"}},
		{"operation wait nobody", 3, nil},
		{"whoami", 0, []string{"function-key", "administrator", "all tenants", "deadletters.bulk"}},
		{"audit list --principal function-key", 0, []string{"OUTCOME", "Done", "function-key", "orchestrations/ends"}},
		{"audit list --target orchestrations/nothing", 0, []string{"There are no such entries."}},
		{"audit list --target a --principal b", 2, []string{"either target or principal"}},
		{"audit export --from 1h", 0, []string{`"action":"purge"`}},
	}
	ran := map[string]bool{}
	for _, step := range steps {
		args := strings.Fields(step.args)
		w.want(t, step.code, step.texts, args...)
		ran[strings.Join(args[:min(2, len(args))], " ")] = true
		ran[args[0]] = true
	}
	a := &app{Main: Main{Lookup: environment(nil), Now: time.Now}}
	eachCommand(a.root(), func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "roundhouse ")
		first, _, _ := strings.Cut(path, " ")
		elsewhere := map[string]bool{"roundhouse": true, "send": true, "poller": true, "doctor": true, "drain": true, "completion": true, "help": true, "version": true}
		if !c.HasSubCommands() && !ran[path] && !elsewhere[first] {
			t.Errorf("%s is not tried", path)
		}
	})
}

// -o json prints the API's data unchanged.
func TestJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for i := range 5 {
		w.record(t, "run-"+string(rune('a'+i)), now.Add(time.Duration(i)*time.Second))
	}
	r := w.want(t, 0, nil, "history", "list", "-o", "json", "--limit", "3")
	var page client.Page
	if err := json.Unmarshal([]byte(r.out), &page); err != nil || len(page.Items) != 3 || page.Token == "" || r.err != "" {
		t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	r = w.want(t, 0, nil, "history", "list", "-o", "json", "--limit", "0", "--continue", page.Token)
	if err := json.Unmarshal([]byte(r.out), &page); err != nil || len(page.Items) != 2 {
		t.Errorf("%v: %s", err, r.out)
	}
	var item client.HistoryItem
	if err := json.Unmarshal(page.Items[1], &item); err != nil || item.CorrelationID != "run-a" {
		t.Errorf("%v %+v", err, item)
	}
	w.want(t, 2, []string{"-o \"xml\": use table or json"}, "history", "list", "-o", "xml")
	for _, args := range []string{"dlq groups", "dlq counts", "timeline run-a", "task list", "outbox list", "orchestration list", "outbox metrics"} {
		r := w.want(t, 0, nil, append(strings.Fields(args), "-o", "json")...)
		if !json.Valid([]byte(r.out)) || r.out == "" {
			t.Errorf("%s: %s", args, r.out)
		}
	}
}

// A failure ends with its exit code, and with one line without secrets.
func TestTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status := func(code int, body string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			rw.WriteHeader(code)
			_, _ = rw.Write([]byte(body))
		}
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		code   int
		text   string
	}{
		"a redirect":          {status(302, ""), 1, "What answers is not the API"},
		"a page":              {status(200, "<html>"), 1, ""},
		"no key":              {status(401, ""), 4, "az login"},
		"no permission":       {status(403, ""), 4, "not accepted"},
		"nobody":              {status(401, `{"status":"Failed","error":{"code":"Unauthenticated","message":"Nobody is signed in."}}`), 4, "sign in (az login) and give --entra"},
		"not permitted":       {status(403, `{"status":"Failed","error":{"code":"Forbidden","message":"You need more."}}`), 4, "roundhouse whoami shows what you may do"},
		"nobody can sign in":  {status(403, `{"status":"Failed","error":{"code":"SignInNotConfigured","message":"Turn it on."}}`), 4, "or a function key with ROUNDHOUSE_KEY"},
		"no such function":    {status(404, ""), 3, "no such function"},
		"throttled":           {status(429, ""), 5, ""},
		"the host is down":    {status(502, "bad gateway"), 5, "does not answer requests now. Try again later. (502 Bad Gateway): roundhouse doctor says more"},
		"storage is down":     {status(503, `{"status":"Failed","error":{"code":"ServiceUnavailable","message":"Storage did not answer in time."}}`), 5, "Storage did not answer"},
		"it fails inside":     {status(500, `{"status":"Failed","error":{"code":"InternalError","message":"It failed."}}`), 1, "It failed. (500 InternalError)"},
		"other shapes":        {status(200, `{"status":"Succeeded","data":{"items":"x"}}`), 1, "not what this version of roundhouse expects"},
		"several are wrong":   {status(400, `{"status":"Failed","error":{"code":"C","message":"M.","target":"a","details":[{"target":"a","message":"M."},{"target":"b","message":"N."}]}}`), 2, "a: M. b: N. (400 C)"},
		"a broken off answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 5, "cannot be reached"},
	} {
		w.refusing(tt.answer)
		r := w.run(t, "history", "list")
		if r.code != tt.code || !strings.Contains(r.err, tt.text) || strings.Count(r.err, "\n") != 1 || r.out != "" || strings.Contains(r.err, functionKey) {
			t.Errorf("%s: %d, want %d %q\n%s%s", name, r.code, tt.code, tt.text, r.out, r.err)
		}
	}
	for _, tt := range []struct {
		url  string
		code int
		text string
	}{
		{"http://127.0.0.1:1", 5, "is the app running"},
		{"http://example.org", 2, "use https"},
		{"ftp://example.org", 2, "no http or https URL"},
		{"https://me:secret@example.org", 2, "has a user"},
		{"https://example.org/?code=secret", 2, "has a user, a query"},
	} {
		r := w.run(t, "history", "list", "--url", tt.url)
		if r.code != tt.code || !strings.Contains(r.err, tt.text) || strings.Contains(r.err, "secret") {
			t.Errorf("%s: %d %s", tt.url, r.code, r.err)
		}
	}
	w.refusing(nil)
	w.want(t, 4, []string{"not accepted"}, "history", "list", "--key", "another")
	w.want(t, 0, nil, "history", "list", "--key", functionKey+"\n")
	if r := w.run(t, "history", "list", "--key", "a\nb"); r.code != 2 || !strings.Contains(r.err, "control character") || strings.Contains(r.err, "a\nb") {
		t.Errorf("a key with a line end in it: %d, %s", r.code, r.err)
	}
	for _, args := range []string{"", "dlq", "dlq nothing", "history show hmac", "send", "history list --limit -1", "history list more", "task assign a b", "--timeout 0s history list", "completion tcsh",
		"orchestration purge --all --yes", "orchestration purge --all --ended-before tomorrow", "outbox replay --all", "dlq expire --all", "dlq retry --all hmac x", "orchestration raise a b --input {", "orchestration raise a b --input @/nowhere"} {
		code := exitUsage
		if args == "" {
			code = exitOK // the help
		}
		w.want(t, code, nil, strings.Fields(args)...)
	}
	w.want(t, 3, []string{"no such orchestration"}, "orchestration", "show", "..")
}

// The retry of an unreadable dead letter reports that the same bytes are sent.
func TestRetryOfTheUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const warned = "a retry sends the same bytes"
	for reason, want := range map[engine.Reason]bool{engine.ReasonUndecodable: true, engine.ReasonOverSize: true, engine.ReasonAttemptsExhausted: false, "": false} {
		id := "m" + string(reason)
		_, err := w.letters.Add(t.Context(), engine.DeadLetter{Engine: "hmac", MessageID: id, InsertedAtUtc: time.Now().UTC().Truncate(time.Second), OriginalQueue: hmac.Queue,
			OriginalMessage: []byte("{"), ErrorMessage: "broken", DetectedReason: reason, LastFailureAtUtc: time.Now().UTC(), CorrelationID: id})
		must(t, err)
		page, err := w.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}, CorrelationID: id})
		must(t, err)
		if r := w.want(t, exitOK, []string{"messageId"}, "dlq", "retry", "hmac", page.DeadLetters[0].RowKey); strings.Contains(r.err, warned) != want {
			t.Errorf("%q: %s", reason, r.err)
		}
	}
	w.want(t, exitNotFound, nil, "dlq", "retry", "hmac", "nothing")
}

// A mistyped command is answered with similar ones, in a group as at the top.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	w := &world{}
	for args, want := range map[string]string{
		"dlq lst":                "did you mean list?",
		"dlq re":                 "did you mean resolve or retry?",
		"orchestration terminat": "did you mean terminate?",
		"dql":                    "did you mean dlq?",
	} {
		w.want(t, exitUsage, []string{"unknown command", want}, strings.Fields(args)...)
	}
	if r := w.want(t, exitUsage, []string{`unknown command "xyzxyz"`}, "dlq", "xyzxyz"); strings.Contains(r.err, "did you mean") {
		t.Error(r.err)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, shell := range shells() {
		if r := w.want(t, 0, nil, "completion", shell); len(r.out) < 1000 {
			t.Errorf("%s: %s", shell, r.out)
		}
	}
	for args, want := range map[string]string{
		"__complete dlq re":                    "resolve",
		"__complete history list --status ":    "Succeeded",
		"__complete dlq list --status ":        "Expired",
		"__complete completion ":               "fish",
		"__complete orchestration list --stat": "--status",
	} {
		parts := strings.Split(args, " ")
		w.want(t, 0, []string{want}, parts...)
	}
}
