package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// Backup is the input of the engine of the examples.
type Backup struct {
	Database string `json:"database"`
}

// newBackup returns an engine with one operation, in two versions, which a schedule starts every night and callers
// over HTTP.
func newBackup() engine.Definition {
	dump := orchestrator.NewActivity("dump", func(_ context.Context, database string) (string, error) { return database + ".dump", nil })
	before := func(ctx *orchestrator.Context, r engine.Request[Backup]) (string, error) {
		return dump.Call(ctx, r.Input.Database).Await()
	}
	run := func(ctx *orchestrator.Context, r engine.Request[Backup]) (string, error) {
		if r.Input.Database == "" {
			return "", orchestrator.Permanent(fmt.Errorf("the message names no database"))
		}
		return dump.Call(ctx, r.Input.Database).Await()
	}
	return engine.Definition{
		Name:         "backup",
		Queue:        "backup-queue",
		Orchestrator: engine.Orchestrate("backup", run, orchestrator.WithVersion("2")),
		Versions:     []orchestrator.AnyOrchestrator{engine.Orchestrate("backup", before)},
		Operations:   []orchestrator.AnyActivity{dump},
		Schedules:    []engine.Schedule{{Name: "nightly", Cron: "0 0 3 * * *", Messages: nightly}},
		Intakes:      []engine.Intake{{Function: "backup-intake", Route: "backups"}},
		Keep:         30 * 24 * time.Hour,
		Example:      &engine.Message{Input: json.RawMessage(`{"database": "shop"}`)},
	}
}

// nightly returns the messages of the schedule.
func nightly(context.Context, time.Time) ([]engine.Message, error) {
	return []engine.Message{{Input: json.RawMessage(`{"database": "shop"}`)}}, nil
}

// A definition defines an engine for an app; functions, queues and routes follow from it.
func ExampleDefinition() {
	d := newBackup()
	if err := d.Validate(); err != nil {
		log.Fatal(err)
	}
	about := d.Describe()
	fmt.Println(about.Function, "listens to", about.Queue)
	fmt.Println("its schedule", about.Schedules[0].Name, "is due at", about.Schedules[0].Cron)
	fmt.Println(about.Intakes[0].Function, "answers POST", "/api/"+about.Intakes[0].Route)
	fmt.Printf("new runs begin with version %q, those of version %q go on\n", about.Version, about.Versions[0])
	// Output:
	// backup-queue-trigger listens to backup-queue
	// its schedule nightly is due at 0 0 3 * * *
	// backup-intake answers POST /api/backups
	// new runs begin with version "2", those of version "" go on
}

// Validate returns all errors of a definition together.
func ExampleDefinition_Validate() {
	d := newBackup()
	d.Queue = ""
	d.Schedules[0].Cron = "0 3 * * *"
	fmt.Println(d.Validate())
	// Output:
	// engine "backup": queue, orchestrator and operations are required
	// schedule "nightly": "0 3 * * *": an NCRONTAB expression has six fields, "second minute hour day month weekday", and no time zone
}

// An engine's orchestrator is a function of the message: of its envelope, and of the engine's own input. Unknown
// input fails permanently. Here it runs on a runtime in memory; in an app, messages of the queue start it.
func ExampleOrchestrate() {
	greet := orchestrator.NewActivity("greet", func(_ context.Context, name string) (string, error) { return "Hello, " + name, nil })
	type input struct {
		Name string `json:"name"`
	}
	hello := engine.Orchestrate("hello", func(ctx *orchestrator.Context, r engine.Request[input]) (string, error) {
		return greet.Call(ctx, r.Input.Name+" of "+r.TenantID).Await()
	})

	ctx := context.Background()
	runtime, err := orchestrator.New(orchestrator.Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(),
		Orchestrators: []orchestrator.AnyOrchestrator{hello}, Activities: []orchestrator.AnyActivity{greet}})
	if err == nil {
		err = runtime.Prepare(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	for id, message := range []string{`{"tenantId": "contoso", "input": {"name": "Ada"}}`, `{"input": {"nmae": "Ada"}}`} {
		out, err := runtime.Run(ctx, orchestrator.Start{ID: fmt.Sprint("hello-", id), Orchestrator: "hello", Input: json.RawMessage(message)})
		if err != nil {
			log.Fatal(err)
		}
		if out.Failure != nil {
			fmt.Println(out.Status, out.Failure.Message)
			continue
		}
		fmt.Println(out.Status, string(out.Output))
	}
	// Output:
	// Completed "Hello, Ada of contoso"
	// Failed input of engine hello: unknown field "nmae"
}

// The messages of an occurrence have the same correlation ids each time, so a repeated occurrence sends duplicates,
// which do nothing.
func ExampleSchedule_Send() {
	d := newBackup()
	var sent sentMessages
	slot := time.Date(2026, 4, 7, 3, 0, 0, 0, time.UTC)
	for range 2 {
		if _, err := d.Schedules[0].Send(context.Background(), d, &sent, slot); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(len(sent), sent[0] == sent[1])
	// Output: 2 true
}

// sentMessages records messages instead of a queue.
type sentMessages []string

// Send records a message.
func (s *sentMessages) Send(_ context.Context, _ string, body []byte, _ time.Duration) (string, error) {
	*s = append(*s, string(body))
	return "", nil
}
