package main

import (
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writeAnew is the environment variable that makes TestFunctionsAreGenerated rewrite functions/.
const writeAnew = "ROUNDHOUSE_UPDATE_FUNCTIONS"

const root = "../.."

// emulator holds the minimal settings of the app, with the host.json of the repository.
var emulator = settingstest.Emulator(root)

// contexts returns the profiles.
func contexts() []deployment { return []deployment{publisher, managedApp} }

// manifest describes the app in a profile.
func manifest(t *testing.T, in deployment, pairs ...string) handler.Manifest {
	t.Helper()
	m, err := handler.Describe(handler.App{Engines: engines}, emulator.With(contextSetting, string(in)).With(pairs...).Lookup)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The folder functions/ is generated from the definitions of both profiles, and has nothing else. To regenerate it:
//
//	ROUNDHOUSE_UPDATE_FUNCTIONS=1 go test ./cmd/handler -run TestFunctionsAreGenerated
func TestFunctionsAreGenerated(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root, "functions")
	want := map[string]string{}
	for _, in := range contexts() {
		for name, f := range manifest(t, in).Functions {
			f.Name = name
			text := testenv.Must(f.JSON())(t)
			if other, ok := want[name]; ok && other != string(text) {
				t.Errorf("%s differs between the contexts:\n%s%s", name, other, text)
			}
			want[name] = string(text)
			if os.Getenv(writeAnew) != "" {
				testenv.OK(t, f.Write(folder))
			}
		}
	}
	got := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if entry.Name() != "function.json" {
			err = errors.Join(err, errors.New(path+" is not of a function"))
		}
		got[filepath.Base(filepath.Dir(path))] = string(text)
		return err
	})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v; functions/ (-generated +there):\n%s", err, diff)
	}
}

// A timer handles the messages that the host moves to the poison queues. No function listens to these: each would be
// polled as often as any other queue.
func TestEveryPoisonQueueIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, in := range contexts() {
		var plan faults.Plan
		h, err := handler.New(handler.App{Engines: engines}, handler.Config{Lookup: emulator.With(contextSetting, string(in)).Lookup,
			Tables: tables.NewMemory(), Queues: faults.Queues(queues.NewMemory(), plan.Intercept), Blobs: blobs.NewMemory()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		testenv.OK(t, h.Start(t.Context()))
		var want, got []string
		for name, f := range h.Manifest().Functions {
			queue := f.Bindings[0].QueueName
			if strings.HasSuffix(queue, engine.PoisonSuffix) {
				t.Errorf("%s: %s listens to %s", in, name, queue)
			}
			if queue += engine.PoisonSuffix; queue != engine.PoisonSuffix {
				want = append(want, queue)
			}
			if len(queue) > 63 {
				t.Errorf("%s has more than the 63 characters of a queue's name", queue)
			}
		}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orchestration-sweep-timer", strings.NewReader(`{"Data": {"timer": {}}, "Metadata": {}}`))
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, req); rec.Code != http.StatusOK {
			t.Errorf("%s: %d %s", in, rec.Code, rec.Body)
		}
		for _, c := range plan.Calls() {
			if c.Operation == "Receive" {
				got = append(got, c.Target)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: looked at (-want +got):\n%s", in, diff)
		}
	}
}

// Only these endpoints accept requests without a key or a principal: the probes of a platform, the challenges of a
// certificate authority, the intakes, which verify tokens and signatures, and the console. The console is for users
// only and calls the API in their names. Every other endpoint is for users, whom the API authorizes, and has a twin
// for keys.
func TestWhatIsAnonymous(t *testing.T) {
	t.Parallel()
	var got []string
	m := manifest(t, publisher)
	for name, f := range m.Functions {
		twin, forPeople := m.Functions["machine-"+name]
		if forPeople && twin.Bindings[0].AuthLevel != "function" {
			t.Errorf("machine-%s asks for no key", name)
		}
		if f.Bindings[0].AuthLevel == "anonymous" && !forPeople {
			got = append(got, name)
		}
	}
	for _, r := range m.Access.Routes {
		if (r.Permission == access.Public) != strings.HasPrefix(r.Path, "/api/health/") && r.Path != "/api/health/full" && r.Engine == "" {
			t.Errorf("%s %s needs %q", r.Method, r.Path, r.Permission)
		}
	}
	slices.Sort(got)
	want := []string{"acme-challenge", "alert-intake", "console", "health-live", "health-ready", "managed-app-notification", "marketplace-webhook", "report-intake"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Every setting that the app reads is documented.
func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	text := testenv.Must(os.ReadFile(filepath.Join(root, "docs", "settings.md")))(t)
	names := map[string]bool{}
	for _, in := range contexts() {
		for _, name := range manifest(t, in).Settings {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(name, "ROUNDHOUSE_") && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/settings.md does not tell of %s", name)
		}
	}
	if len(names) < 40 {
		t.Errorf("only %d settings", len(names))
	}
}

// The roles of the apps in docs/security.md are those that the apps require. Its table lists them by name, in the
// rows of the app's own resources.
func TestRolesAreDocumented(t *testing.T) {
	t.Parallel()
	text := testenv.Must(os.ReadFile(filepath.Join(root, "docs", "security.md")))(t)
	_, section, _ := strings.Cut(string(text), "## Roles in Azure")
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile(`(?m)^\| (both|publisher|managed application) \| its [^|]* \| ([^|]*) \|`)
	for app, in := range map[string]deployment{"publisher": publisher, "managed application": managedApp} {
		documented := map[string]bool{}
		for _, match := range row.FindAllStringSubmatch(section, -1) {
			if match[1] != "both" && match[1] != app {
				continue
			}
			for _, name := range regexp.MustCompile(`(?:Storage|Key Vault|Monitoring|DNS) [A-Z][A-Za-z ]*(?:Owner|Contributor|User|Officer|Publisher)`).FindAllString(match[2], -1) {
				documented[name] = true
			}
		}
		needed := map[string]bool{}
		for _, role := range manifest(t, in).Roles {
			needed[role.Name] = true
		}
		if diff := cmp.Diff(documented, needed); diff != "" {
			t.Errorf("%s (-docs/security.md +manifest):\n%s", app, diff)
		}
	}
}

// All errors in the settings of engines are reported, with the settings' names.
func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in    deployment
		pairs []string
		want  []string // one line of the error each
	}{
		{"", []string{contextSetting, "moon"}, []string{`ROUNDHOUSE_CONTEXT: it is "moon": set it to publisher or managed-app`}},
		{publisher, []string{"ROUNDHOUSE_SPN_OWNER", "not me"}, []string{"ROUNDHOUSE_SPN_OWNER: set 1 to 40 letters"}},
		{publisher, []string{"ROUNDHOUSE_SPN_OVERLAP", "1", "ROUNDHOUSE_HMAC_GRACE", "a day"}, []string{"ROUNDHOUSE_HMAC_GRACE: set a Go duration", "ROUNDHOUSE_SPN_OVERLAP: set a Go duration"}},
		{publisher, []string{"ROUNDHOUSE_HMAC_GRACE", "5m"}, []string{"must be shorter"}},
		{publisher, []string{"ROUNDHOUSE_HMAC_PROPAGATION", "24h"}, []string{"must be shorter"}},
		{publisher, []string{"ROUNDHOUSE_HMAC_GRACE", "48h", "ROUNDHOUSE_OUTBOX_RETENTION", "48h"}, []string{"ROUNDHOUSE_HMAC_GRACE: it is 48h0m0s: set less than ROUNDHOUSE_OUTBOX_RETENTION"}},
		{publisher, []string{"ROUNDHOUSE_SPN_OVERLAP", "48h", "ROUNDHOUSE_OUTBOX_RETENTION", "36h"}, []string{"ROUNDHOUSE_SPN_OVERLAP: it is 48h0m0s: set less than ROUNDHOUSE_OUTBOX_RETENTION"}},
		{publisher, []string{"ROUNDHOUSE_SPN_REMOVE_AFTER", "0", "ROUNDHOUSE_ROTATION_PATIENCE", "0"}, []string{"ROUNDHOUSE_ROTATION_PATIENCE: set a Go duration", "ROUNDHOUSE_SPN_REMOVE_AFTER: set a Go duration"}},
		{publisher, []string{"ROUNDHOUSE_SPN_LIFETIME", "360h"}, []string{"ROUNDHOUSE_SPN_LIFETIME: it is 360h0m0s: set more than 360h0m0s"}},
		{publisher, []string{"ROUNDHOUSE_SPN_GRAPH_URL", "ftp://graph"}, []string{"ROUNDHOUSE_SPN_GRAPH_URL: set an https address"}},
		{publisher, []string{"ROUNDHOUSE_ROTATIONS", `{"hmac":[{}]}`}, []string{"ROUNDHOUSE_ROTATIONS: target 1 of hmac"}},
		{publisher, []string{"ROUNDHOUSE_MARKETPLACE_TENANT", "contoso"}, []string{"ROUNDHOUSE_MARKETPLACE_TENANT and ROUNDHOUSE_MARKETPLACE_APP_ID: set both"}},
		{publisher, []string{"ROUNDHOUSE_MARKETPLACE_TENANT", "contoso.com", "ROUNDHOUSE_MARKETPLACE_APP_ID", "api://contoso.com/x"},
			[]string{"ROUNDHOUSE_MARKETPLACE_TENANT: it is not an id of Microsoft Entra", "ROUNDHOUSE_MARKETPLACE_APP_ID: it is not an id of Microsoft Entra"}},
		{publisher, []string{"ROUNDHOUSE_ALERTS_KEY", "a key with blanks in it"}, []string{"ROUNDHOUSE_ALERTS_KEY: it has a blank"}},
		{publisher, []string{"ROUNDHOUSE_ALERTS_KEY", "short"}, []string{"ROUNDHOUSE_ALERTS_KEY: set 16 characters"}},
		{publisher, []string{"ROUNDHOUSE_ROTATIONS", `{"tls":[{"domains":["a.example.com"],"keyType":"RSA-1024"}]}`}, []string{"ROUNDHOUSE_ROTATIONS: target 1 of tls"}},
		{publisher, []string{"ROUNDHOUSE_ROTATIONS", `{"tls":[{"domains":["a.example.com"]},{"domains":["b.example.com"]}]}`,
			"ROUNDHOUSE_TLS_TARGETS", `[{"id":"x","address":"a.example.com:443"},{"id":"y","address":"b.example.com:443","certificates":["c.example.com"]}]`},
			[]string{"ROUNDHOUSE_TLS_TARGETS: [0]: certificates is missing", `ROUNDHOUSE_TLS_TARGETS: [1]: certificates: "c.example.com" is not renewed on schedule`}},
		{publisher, []string{"ROUNDHOUSE_ROTATIONS", `{"tls":[{"domains":["*.example.com"]}]}`}, []string{"ROUNDHOUSE_ROTATIONS: a wildcard of tls takes ROUNDHOUSE_TLS_DNS"}},
		{publisher, []string{"ROUNDHOUSE_TLS_CHALLENGE", "dns-01"}, []string{"ROUNDHOUSE_TLS_CHALLENGE: dns-01 takes ROUNDHOUSE_TLS_DNS"}},
		{publisher, []string{"ROUNDHOUSE_TLS_CHALLENGE", "dns"}, []string{"ROUNDHOUSE_TLS_CHALLENGE: set http-01 or dns-01"}},
		{publisher, []string{"ROUNDHOUSE_TLS_DNS", `{"a.example":{},"b.example":{"azure":{"zoneId":"/x"}},"c.example":{"rfc2136":{"server":"ns:53","key":"k","secret":"no name"}},
			"d.example":{"rfc2136":{"server":"ns","key":"k","secret":"name"}},"E.example":{"rfc2136":{"server":"ns:53","key":"k","secret":"name"}}}`},
			[]string{`ROUNDHOUSE_TLS_DNS: "a.example": set azure or rfc2136`, `ROUNDHOUSE_TLS_DNS: "b.example": dns: zoneId must be`, `ROUNDHOUSE_TLS_DNS: "c.example": rfc2136: secret`,
				`ROUNDHOUSE_TLS_DNS: "d.example": dns: name server "ns"`, `ROUNDHOUSE_TLS_DNS: dns: zone "E.example"`}},
		{publisher, []string{"ROUNDHOUSE_ACME_CONTACT", "nobody"}, []string{"ROUNDHOUSE_ACME_CONTACT: set an e-mail address"}},
		{managedApp, []string{"ROUNDHOUSE_UPDATE_APPROVAL", `{"canary":{"deadlineSeconds":-1},"b":{}}`}, []string{`ROUNDHOUSE_UPDATE_APPROVAL: the approval of the ring "b"`, `ring "canary"`}},
		{managedApp, []string{"ROUNDHOUSE_UPDATE_INTAKE_KEYS", `[{"id":"p","secret":"no/name"}]`}, []string{"ROUNDHOUSE_UPDATE_INTAKE_KEYS: signingKeys[0].secret: give the name"}},
		{publisher, []string{"ROUNDHOUSE_REPORT_INTAKE_KEYS", `[{"id":"p","secret":"My-{instance}"}]`}, []string{"ROUNDHOUSE_REPORT_INTAKE_KEYS: signingKeys[0].secret: before -{instance}"}},
		{managedApp, []string{"ROUNDHOUSE_UPDATE_ENDPOINT", "ftp://x"}, []string{"ROUNDHOUSE_UPDATE_ENDPOINT: set an https address"}},
	} {
		env := emulator.With(tt.pairs...)
		if tt.in != "" {
			env = env.With(contextSetting, string(tt.in))
		}
		_, err := handler.New(handler.App{Engines: engines}, handler.Config{Lookup: env.Lookup})
		if err == nil {
			t.Errorf("%v: no error", tt.pairs)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		for i, want := range tt.want {
			if len(lines) != len(tt.want) || !strings.Contains(lines[i], want) {
				t.Errorf("%v: %v, want %q", tt.pairs, err, want)
			}
		}
	}
}

// An app in Azure requires settings that the emulator does not need.
func TestSettingsThatAreRequired(t *testing.T) {
	t.Parallel()
	for in, want := range map[deployment]string{publisher: "ROUNDHOUSE_SPN_TENANT", managedApp: "ROUNDHOUSE_UPDATE_ENDPOINT"} {
		if diff := cmp.Diff([]string{"ROUNDHOUSE_KEY_VAULT_URL", "ROUNDHOUSE_OUTBOX", want}, manifest(t, in).Required); diff != "" {
			t.Errorf("%s: required (-want +got):\n%s", in, diff)
		}
		env := settingstest.Environment{contextSetting: string(in), "FUNCTIONS_CUSTOMHANDLER_PORT": "1", "FUNCTIONS_APP_ROOT_PATH": root,
			"AzureWebJobsStorage__accountName": "roundhouse1", "AzureWebJobsStorage__credential": "managedidentity", "ROUNDHOUSE_KEY_VAULT_URL": "https://v.vault.azure.net",
			"ROUNDHOUSE_OUTBOX": `{"destinations":{"log":{"log":{}}},"routes":[{"eventType":"*","destination":"log"}]}`}
		_, err := handler.New(handler.App{Engines: engines}, handler.Config{Lookup: env.Lookup})
		if err == nil || !strings.Contains(err.Error(), want+": it is not set") {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

// Two vaults never share an owner's mark.
func TestOwner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ set, vault, want string }{
		{"me", "https://v.vault.azure.net", "me"}, {"", "https://v.vault.azure.net", "v"}, {"", "", "development"},
	} {
		if got := ownerOf(tt.set, tt.vault); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// The definitions have the app's additions to its engines.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	described := map[string]engine.Description{}
	for _, d := range manifest(t, publisher).Engines {
		described[d.Name] = d
	}
	if d := described[hmac.Engine]; d.Queue != hmac.Queue || d.Example == nil || d.Schedules[0] != (engine.ScheduleDescription{Name: "schedule", Cron: "0 11 2 * * *"}) {
		t.Errorf("%+v", d)
	}
	if d := described[spn.Engine]; d.Schedules[0].Cron != "0 26 2 * * 0" {
		t.Errorf("%+v", d)
	}
	if d := described["alerts"]; d.Function != "alert-processor" || d.Intakes[0].Route != "alerts" {
		t.Errorf("%+v", d)
	}
}
