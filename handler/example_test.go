package handler_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// engines returns the engines of the examples' app: one that greets with the text of a setting.
func engines(p *handler.Platform) ([]engine.Definition, error) {
	greeting := p.Settings.Required("GREETING", "what to say")
	greet := orchestrator.NewActivity("greet", func(_ context.Context, name string) (string, error) { return greeting + ", " + name, nil })
	hello := func(ctx *orchestrator.Context, r engine.Request[string]) (string, error) {
		return greet.Call(ctx, r.Input).Await()
	}
	return []engine.Definition{{Name: "hello", Queue: "hello-queue", Orchestrator: engine.Orchestrate("hello", hello),
		Operations: []orchestrator.AnyActivity{greet}, Intakes: []engine.Intake{{Function: "hello-intake", Route: "hello"}}}}, nil
}

// environment is the environment of an app on a developer's machine.
func environment(name string) (string, bool) {
	value, ok := map[string]string{"AzureWebJobsStorage": "UseDevelopmentStorage=true", "FUNCTIONS_CUSTOMHANDLER_PORT": "0",
		"AzureFunctionsJobHost__extensions__queues__maxDequeueCount": "8", "GREETING": "Hello"}[name]
	return value, ok
}

// The main function of a program is a call of Main. The host's functions are derived from the app's engines, and can
// be read without running anything.
func ExampleApp() {
	app := handler.App{Engines: engines} // func main() { handler.Main(app) }
	manifest, err := handler.Describe(app, environment)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"hello-queue-trigger", "hello-intake"} {
		_, ok := manifest.Functions[name]
		fmt.Println(name, ok)
	}
	fmt.Println("it reads GREETING:", slices.Contains(manifest.Settings, "GREETING"))
	// Output:
	// hello-queue-trigger true
	// hello-intake true
	// it reads GREETING: true
}

// An app without its server is an http.Handler, which answers the requests of the Functions host. Tests use package
// handlertest, which also plays the host.
func ExampleNew() {
	app, err := handler.New(handler.App{Engines: engines},
		handler.Config{Lookup: environment, Tables: tables.NewMemory(), Queues: queues.NewMemory(), Blobs: blobs.NewMemory()})
	if err != nil {
		log.Fatal(err)
	}
	defer app.Close()
	if err := app.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	answer := httptest.NewRecorder()
	app.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/api/health/live", nil))
	fmt.Println(answer.Code)
	// Output: 200
}
