package handler

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/durable"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// workApp returns an app with one engine, which has every optional part.
func workApp(change ...func(*engine.Definition)) App {
	return App{Engines: func(*Platform) ([]engine.Definition, error) {
		do := orchestrator.NewActivity("do", nothing)
		run := func(ctx *orchestrator.Context, _ engine.Request[struct{}]) (struct{}, error) {
			return do.Call(ctx, struct{}{}).Await()
		}
		d := engine.Definition{Name: "work", Queue: "work-queue", Orchestrator: engine.Orchestrate("work", run, orchestrator.WithVersion("2")),
			Versions:   []orchestrator.AnyOrchestrator{engine.Orchestrate("work", run, orchestrator.WithVersion("1"))},
			Children:   []orchestrator.AnyOrchestrator{orchestrator.NewOrchestrator("part", func(*orchestrator.Context, int) (int, error) { return 1, nil })},
			Operations: []orchestrator.AnyActivity{do},
			Schedules:  []engine.Schedule{{Cron: "0 0 * * * *"}, {Name: "nightly", Cron: "0 0 3 * * *"}},
			Intakes:    []engine.Intake{{Function: "work-intake", Route: "work"}},
			Endpoints:  []engine.Endpoint{{Function: "work-page", Route: "pages/{name}", Methods: []string{http.MethodGet}, Anonymous: true, Handler: http.NotFoundHandler()}},
		}
		for _, c := range change {
			c(&d)
		}
		return []engine.Definition{d}, nil
	}}
}

// Every part of an engine gets its function.
func TestFunctionsOfAnEngine(t *testing.T) {
	t.Parallel()
	m, err := Describe(workApp(), emulator.Lookup)
	testenv.OK(t, err)
	for _, want := range []function.Function{
		function.Queue("work-queue-trigger", "work-queue"),
		function.Unmonitored("schedules-timer", "0 * * * * *"),
		function.HTTP("work-intake", "work", function.Key, "post"),
		function.HTTP("work-page", "pages/{name}", function.Anonymous, "get"),
	} {
		got, ok := m.Functions[want.Name]
		gotJSON, err1 := got.JSON()
		wantJSON, err2 := want.JSON()
		if !ok || err1 != nil || err2 != nil || string(gotJSON) != string(wantJSON) {
			t.Errorf("%s: %s, want %s", want.Name, gotJSON, wantJSON)
		}
	}
	if d := m.Engines[0]; d.Version != "2" || !slices.Equal(d.Versions, []string{"1"}) || !slices.Equal(d.Children, []string{"part"}) {
		t.Errorf("%+v", d)
	}
}

// An invalid app is refused, with the reason.
func TestAppsThatAreRefused(t *testing.T) {
	t.Parallel()
	for complaint, change := range map[string]func(*engine.Definition){
		"the route metrics belongs to two":                                       func(d *engine.Definition) { d.Endpoints[0].Route = "metrics" },
		"the name dlq belongs to two functions":                                  func(d *engine.Definition) { d.Intakes[0].Function = "dlq" },
		"the queue orchestration-signals belongs":                                func(d *engine.Definition) { d.Queue = "orchestration-signals" },
		"the route orchestrations of work-intake lies in orchestrations/{*path}": func(d *engine.Definition) { d.Intakes[0].Route = "orchestrations" },
		"the route dlq/mine of work-page lies in":                                func(d *engine.Definition) { d.Endpoints[0].Route = "dlq/mine" },
		"six fields":                              func(d *engine.Definition) { d.Schedules[0].Cron = "0 * * * *" },
		"no such date exists":                     func(d *engine.Definition) { d.Schedules[0].Cron = "0 0 0 30 2 *" },
		"not admin, not machine, not runtime":     func(d *engine.Definition) { d.Intakes[0].Route = "admin/x" },
		`route "machine/x": lower-case`:           func(d *engine.Definition) { d.Intakes[0].Route = "machine/x" },
		"registered twice":                        func(d *engine.Definition) { d.Versions = append(d.Versions, d.Orchestrator) },
		"the engine's name and a version":         func(d *engine.Definition) { d.Versions = append(d.Versions, d.Children[0]) },
		"an orchestrator with a name of its own":  func(d *engine.Definition) { d.Children = append(d.Children, d.Orchestrator) },
		"methods and a handler are required":      func(d *engine.Definition) { d.Endpoints[0].Handler = nil },
		"is not a success":                        func(d *engine.Definition) { d.Intakes[0].Status = 404 },
		"lower-case letters, digits and dashes":   func(d *engine.Definition) { d.Schedules[1].Name = "At Night" },
		"a negative Timeout or Keep":              func(d *engine.Definition) { d.Keep = -1 },
		"the name of a function has letters":      func(d *engine.Definition) { d.Intakes[0].Function = "work intake" },
		`schedule "": there are two of this name`: func(d *engine.Definition) { d.Schedules[1].Name = "" },
		"queue, orchestrator and operations":      func(d *engine.Definition) { d.Operations = nil },
		"the host accepts letters, digits, - and": func(d *engine.Definition) { d.Function = "9 lives" },
	} {
		_, err := Describe(workApp(change), emulator.Lookup)
		if err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q is not in: %v", complaint, err)
		}
	}
}

// serves reports whether a function leads to a route of the API.
func serves(b function.Binding, method string, r api.Route) bool {
	resource, _, _ := strings.Cut(b.Route, "/{")
	// The host refuses a route that begins with a reserved word, and a parameter begins with anything.
	path := "/api/" + strings.Replace(strings.TrimPrefix(resource, "machine/"), "{runtime}", "runtime", 1)
	if method == "head" {
		method = http.MethodGet
	}
	return strings.EqualFold(method, r.Method) && (r.Path == path || strings.HasPrefix(r.Path, path+"/"))
}

// Every HTTP function has a route. Every route has a function for users, without a key, and one for machines, for
// which the host requires a key. The probes are public, and the console is for users: they have only the first.
func TestHTTPFunctionsAndRoutes(t *testing.T) {
	t.Parallel()
	routes := slices.Concat(api.Routes(), console.Routes(), durable.Routes())
	reached := map[function.Level]map[api.Route]bool{function.Anonymous: {}, function.Key: {}}
	for _, f := range httpFunctions() {
		b := f.Bindings[0]
		if machine := strings.HasPrefix(b.Route, "machine/"); machine != (b.AuthLevel == function.Key) || machine != strings.HasPrefix(f.Name, "machine-") {
			t.Errorf("%s: %s is for %s", f.Name, b.Route, b.AuthLevel)
		}
		for _, method := range b.Methods {
			found := false
			for _, r := range routes {
				if serves(b, method, r) {
					found, reached[b.AuthLevel][r] = true, true
				}
			}
			if !found {
				t.Errorf("the API has no route for %s %s", method, b.Route)
			}
		}
	}
	for _, r := range routes {
		if !reached[function.Anonymous][r] || reached[function.Key][r] == (r.Permission == access.Public || strings.HasPrefix(r.Path, console.Root)) {
			t.Errorf("functions lead to %s %s: people %v, machines %v", r.Method, r.Path, reached[function.Anonymous][r], reached[function.Key][r])
		}
	}
}

func nothing(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }
