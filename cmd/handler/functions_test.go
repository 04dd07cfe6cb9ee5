package handler

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/handler/durable"
	"github.com/vibedata/roundhouse/handler/intake"
	"github.com/vibedata/roundhouse/handler/trigger"
)

// binding is a binding of a function.json.
type binding struct {
	Type       string
	Direction  string
	Name       string
	QueueName  string
	Connection string
	DataType   string
	AuthLevel  string
	Methods    []string
	Route      string
	Schedule   string
}

// readJSON reads a JSON file and refuses members that into does not have, if strict.
func readJSON(t *testing.T, path string, strict bool, into any) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// contexts are the deployment contexts.
func contexts() []deployment { return []deployment{publisher, managedApp} }

// stagedFor are the bindings of the functions that scripts/stage lays out for a deployment context.
func stagedFor(t *testing.T, d deployment) map[string][]binding {
	t.Helper()
	cmd := exec.Command("../scripts/stage", "--list")
	cmd.Env = append(os.Environ(), "ROUNDHOUSE_CONTEXT="+string(d))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all, functions := staged(t), map[string][]binding{}
	for _, name := range strings.Fields(string(out)) {
		functions[name] = all[name]
	}
	return functions
}

// staged are the bindings of every function in functions/, by function name.
func staged(t *testing.T) map[string][]binding {
	t.Helper()
	paths, err := filepath.Glob("../functions/*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("functions: %v, %v", paths, err)
	}
	functions := map[string][]binding{}
	for _, path := range paths {
		files, err := os.ReadDir(path)
		if err != nil || len(files) != 1 || files[0].Name() != "function.json" {
			t.Errorf("%s: holds %v, want a function.json and nothing else (%v)", path, files, err)
			continue
		}
		var function struct{ Bindings []binding }
		readJSON(t, filepath.Join(path, "function.json"), true, &function)
		functions[filepath.Base(path)] = function.Bindings
	}
	return functions
}

// registered is what the program serves.
type registered struct {
	queues map[string]trigger.Queue
	timers map[string]trigger.Timer
	routes []api.Route
}

func register(t *testing.T, d deployment) registered {
	t.Helper()
	var all registered
	log := slog.New(slog.DiscardHandler)
	s, err := LoadSettings(emulator.with("ROUNDHOUSE_CONTEXT", string(d)).lookup)
	if err != nil {
		t.Fatal(err)
	}
	a, err := wire(t.Context(), s, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	if _, err := newRouter(a, s, log); err != nil {
		t.Fatal(err)
	}
	all.queues, all.timers = a.Queues, a.Timers
	all.routes = append(api.Routes(), durable.Routes()...)
	if d == publisher {
		all.routes = append(all.routes, api.Route{Method: http.MethodGet, Path: challengePath})
	}
	for _, path := range intake.Paths() {
		if d == managedApp && path != intake.AlertsPath {
			continue // the publisher's
		}
		all.routes = append(all.routes, api.Route{Method: http.MethodPost, Path: path})
	}
	return all
}

// No function without a handler, and the two agree.
func TestEveryFunctionHasItsHandler(t *testing.T) {
	t.Parallel()
	for _, d := range contexts() {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			everyFunction(t, register(t, d), stagedFor(t, d))
		})
	}
}

func everyFunction(t *testing.T, program registered, functions map[string][]binding) {
	for function, bindings := range functions {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			if len(bindings) == 0 {
				t.Fatal("no bindings")
			}
			switch b := bindings[0]; b.Type {
			case "queueTrigger":
				q, ok := program.queues[function]
				if !ok {
					t.Fatal("no handler is registered for this queue function")
				}
				want := binding{Type: "queueTrigger", Direction: "in", Name: q.Parameter, QueueName: q.Queue, Connection: storageSetting, DataType: "binary"}
				checkBindings(t, bindings, want)
			case "timerTrigger":
				timer, ok := program.timers[function]
				if !ok {
					t.Fatal("no handler is registered for this timer function")
				}
				checkBindings(t, bindings, binding{Type: "timerTrigger", Direction: "in", Name: timer.Parameter, Schedule: b.Schedule})
				// A schedule out of a setting has no default: where the setting is missing, the host leaves the function out.
				if strings.Contains(b.Schedule, "%") || len(strings.Fields(b.Schedule)) != 6 {
					t.Errorf("the schedule is %q, want six fields as they are", b.Schedule)
				}
			case "httpTrigger":
				// Only one input and one output make the host forward the request as it is.
				checkBindings(t, bindings,
					binding{Type: "httpTrigger", Direction: "in", Name: "req", AuthLevel: authLevel(function), Methods: b.Methods, Route: b.Route},
					binding{Type: "http", Direction: "out", Name: "res"})
				if route := strings.ToLower(strings.Trim(b.Route, "/")); strings.HasPrefix(route, "admin") || strings.HasPrefix(route, "runtime") {
					t.Errorf("the host keeps what begins as %s does for itself, and leaves the function out", b.Route)
				}
				for _, method := range b.Methods {
					if !slices.ContainsFunc(program.routes, func(r api.Route) bool { return serves(b, method, r) }) {
						t.Errorf("the API has no route for %s %s", method, b.Route)
					}
				}
			default:
				t.Errorf("the first binding is a %q, want a trigger", b.Type)
			}
		})
	}
}

// authLevel is who may call an HTTP function: whoever has a key, and without one the prober of a platform, a certificate
// authority, and those whose tokens and signatures the intakes verify.
func authLevel(function string) string {
	switch function {
	case "health-live", "health-ready", "acme-challenge", "marketplace-webhook", "managed-app-notification", "alert-intake":
		return "anonymous"
	default:
		return "function"
	}
}

func checkBindings(t *testing.T, got []binding, want ...binding) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d bindings, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if !slices.Equal(g.Methods, w.Methods) {
			t.Errorf("binding %d: methods %v, want %v", i, g.Methods, w.Methods)
		}
		g.Methods, w.Methods = nil, nil
		if gotJSON, wantJSON := toJSON(t, g), toJSON(t, w); gotJSON != wantJSON {
			t.Errorf("binding %d:\n%s, want\n%s", i, gotJSON, wantJSON)
		}
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// serves says whether a function with this trigger and method leads to the API's route.
func serves(b binding, method string, r api.Route) bool {
	resource, _, _ := strings.Cut(b.Route, "/{")
	// The host refuses a route that begins with what it keeps for itself, and a parameter begins with anything.
	path := "/api/" + strings.Replace(resource, "{runtime}", "runtime", 1)
	return strings.EqualFold(method, r.Method) && (r.Path == path || strings.HasPrefix(r.Path, path+"/"))
}

// No handler without a function.
func TestEveryHandlerHasItsFunction(t *testing.T) {
	t.Parallel()
	for _, d := range contexts() {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			everyHandler(t, register(t, d), stagedFor(t, d))
		})
	}
	// Every function belongs to a context.
	for function := range staged(t) {
		if stagedFor(t, publisher)[function] == nil && stagedFor(t, managedApp)[function] == nil {
			t.Errorf("no deployment context has the function %s", function)
		}
	}
}

func everyHandler(t *testing.T, program registered, functions map[string][]binding) {
	t.Helper()
	for function := range program.queues {
		if _, ok := functions[function]; !ok {
			t.Errorf("queue handler %s has no folder in functions/", function)
		}
	}
	for function := range program.timers {
		if _, ok := functions[function]; !ok {
			t.Errorf("timer handler %s has no folder in functions/", function)
		}
	}
	for _, route := range program.routes {
		reachable := false
		for _, bindings := range functions {
			for _, method := range bindings[0].Methods {
				reachable = reachable || bindings[0].Type == "httpTrigger" && serves(bindings[0], method, route)
			}
		}
		if !reachable {
			t.Errorf("no function leads to %s %s", route.Method, route.Path)
		}
	}
}

// What the host gives up on must reach the dead letters.
func TestEveryQueueHasItsPoisonTwin(t *testing.T) {
	t.Parallel()
	queues := map[string]int{}
	for _, q := range register(t, publisher).queues {
		queues[q.Queue]++
	}
	for queue, functions := range queues {
		if functions != 1 {
			t.Errorf("%d functions listen to %s: each would get a part of its messages", functions, queue)
		}
		if !strings.HasSuffix(queue, "-poison") && queues[queue+"-poison"] == 0 {
			t.Errorf("no function listens to %s-poison", queue)
		}
		if len(queue) > 63 {
			t.Errorf("%s has more than the 63 characters of a queue's name", queue)
		}
	}
}

// host.json says what the program relies on.
func TestHostJSON(t *testing.T) {
	t.Parallel()
	var host struct {
		CustomHandler struct {
			Description                 struct{ DefaultExecutablePath string }
			EnableForwardingHTTPRequest bool `json:"enableForwardingHttpRequest"`
			EnableProxyingHTTPRequest   bool `json:"enableProxyingHttpRequest"`
		}
		Extensions struct {
			HTTP   struct{ RoutePrefix string } `json:"http"`
			Queues struct {
				BatchSize, NewBatchThreshold       *int
				MessageEncoding, VisibilityTimeout string
			}
		}
	}
	readJSON(t, "../host.json", false, &host)
	if path := host.CustomHandler.Description.DefaultExecutablePath; path != "handler" {
		t.Errorf("the executable is %q; publishing makes executable only what is called exactly so in the folder", path)
	}
	if !host.CustomHandler.EnableForwardingHTTPRequest || !host.CustomHandler.EnableProxyingHTTPRequest {
		t.Error("HTTP requests are not forwarded and proxied")
	}
	if host.Extensions.HTTP.RoutePrefix != "api" {
		t.Errorf("route prefix %q", host.Extensions.HTTP.RoutePrefix)
	}
	q := host.Extensions.Queues
	if q.BatchSize == nil || q.NewBatchThreshold == nil {
		t.Error("batchSize and newBatchThreshold are not both set: concurrency would depend on the machine's cores")
	}
	if q.MessageEncoding != "none" {
		t.Errorf("messageEncoding %q: the host would move what it cannot decode where no function can read it", q.MessageEncoding)
	}
	visibility, err := parseTimeSpan(q.VisibilityTimeout)
	if err != nil || visibility.Seconds() < 30 {
		t.Errorf("visibilityTimeout %q, %v: attempts would follow each other at once", q.VisibilityTimeout, err)
	}
	s, err := LoadSettings(emulator.lookup)
	if err != nil {
		t.Fatal(err)
	}
	if s.Host.MaxDequeueCount <= 5 || s.Budget != trigger.DefaultBudget {
		t.Errorf("maxDequeueCount %d, budget %v", s.Host.MaxDequeueCount, s.Budget)
	}
}

func TestLocalSettingsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	var local struct {
		IsEncrypted *bool
		Values      environment
	}
	readJSON(t, "../local.settings.json", true, &local)
	if local.IsEncrypted == nil || *local.IsEncrypted {
		t.Error("IsEncrypted must be false")
	}
	if local.Values["FUNCTIONS_WORKER_RUNTIME"] != "custom" || local.Values["AzureWebJobsStorage"] != "UseDevelopmentStorage=true" {
		t.Errorf("values %v", local.Values)
	}
	for name, value := range local.Values {
		if strings.Contains(strings.ToLower(name+value), "key") {
			t.Errorf("%s looks like a secret", name)
		}
	}
	if _, err := LoadSettings(emulator.with("AzureWebJobsStorage", "").with(flat(local.Values)...).lookup); err != nil {
		t.Error(err)
	}
}

func flat(values environment) []string {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, name, value)
	}
	return pairs
}
