package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/handler/api/health"
	"github.com/vibedata/roundhouse/handler/api/metrics"
	"github.com/vibedata/roundhouse/handler/durable"
	"github.com/vibedata/roundhouse/handler/intake"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// messageParameter is the name of the trigger binding of every queue function, timerParameter of every timer function.
const (
	messageParameter = "message"
	timerParameter   = "timer"
)

// operatorEngine is under what name the history has what the command line changed past the API.
const operatorEngine = "operator"

// challengePath is where http-01 challenges of certificate authorities are answered.
const challengePath = "/api/acme-challenge/:token"

// parts are those of the program, in the order in which they are made.
type parts struct {
	settings Settings
	log      *slog.Logger
	stores   stores
	history  *engine.History
	letters  *engine.DeadLetters
	counted  *metrics.Metrics
	locks    hostlock.Locks
	claims   *engine.Claims

	events      *events
	definitions []engine.Definition
	pollers     *pollers
	retrier     *engine.Retrier
	// names are what history and dead letters are of: the engines, and what else has rows there.
	names []string

	runtime  *orchestrator.Runtime
	list     *catalog.Catalog
	pipeline *engine.Pipeline
	// orchestrators are the names of what the runtime runs.
	orchestrators []string
}

// wire builds the program out of its settings. It does not go to the network: that is left to the app's Start.
func wire(_ context.Context, s Settings, log *slog.Logger) (app, error) {
	stores, err := openStores(s)
	if err != nil {
		return app{}, err
	}
	return assemble(s, stores, log)
}

// assemble builds the program over its stores.
func assemble(s Settings, stores stores, log *slog.Logger) (app, error) {
	p := &parts{settings: s, log: log, stores: stores, history: engine.NewHistory(stores.tables, ""), letters: engine.NewDeadLetters(stores.tables, ""),
		counted: metrics.New(), locks: hostlock.Locks{Tables: stores.tables}, claims: engine.NewClaims(stores.blobs, "")}
	for _, part := range []func() error{p.wireEngines, p.wireRuntime, p.wirePipeline} {
		if err := part(); err != nil {
			return app{}, err
		}
	}
	a := app{Queues: p.queues(), Timers: p.timers(), Start: p.start, Close: p.close}
	p.events.register(&a)
	p.pollers.register(&a)
	var err error
	if a.API, err = p.web(); err != nil {
		return app{}, err
	}
	return a, nil
}

// wireEngines makes what there is to run, where its events go, and what of it can be retried.
func (p *parts) wireEngines() (err error) {
	if p.events, err = wireOutbox(p.settings, p.stores, p.letters, p.counted.Outbox(), p.log); err != nil {
		return err
	}
	if p.definitions, err = engines(p.settings, p.stores, eventPublisher{p.events.writer}, p.log); err != nil {
		return err
	}
	if p.pollers, err = wirePollers(p.settings, p.stores, p.definitions, p.claims, p.events.writer, p.letters, p.log); err != nil {
		return err
	}
	p.pollers.starts[outboxEngine] = p.events.dead.retry
	p.names = append([]string{engine.SignalEngine, outboxEngine, operatorEngine}, p.pollers.names()...)
	for _, d := range p.definitions {
		p.names = append(p.names, d.Name)
	}
	p.retrier, err = engine.NewRetrier(engine.RetrierConfig{DeadLetters: p.letters, Queues: p.stores.queues, Starts: p.pollers.starts})
	return err
}

// wireRuntime makes what runs it. Some of what it runs works on the runtime itself, which is there when that runs.
func (p *parts) wireRuntime() (err error) {
	runtime := func() *orchestrator.Runtime { return p.runtime }
	if p.list, err = catalog.New(catalog.Config{Tables: p.stores.tables, Runtime: runtime, Log: p.log}); err != nil {
		return err
	}
	config := orchestrator.Config{Tables: p.stores.tables, Blobs: p.stores.blobs, Queues: p.stores.queues, Log: p.log, Noted: p.list.Note, Publish: p.events.publish,
		Ended:   func(ctx context.Context, out orchestrator.Outcome) error { return p.pipeline.Ended(ctx, out) },
		Stalled: func(ctx context.Context, out orchestrator.Outcome) error { return p.pipeline.Stalled(ctx, out) },
		Damaged: func(ctx context.Context, d orchestrator.Damage) error { return p.pipeline.Damaged(ctx, d) }}
	if err := wireReviews(&config, p.settings.Tasks.ReviewRoles, p.letters, p.retrier, runtime); err != nil {
		return err
	}
	kinds := []bulk.Kind{bulk.Outbox(p.events.admin), bulk.DeadLetters{Letters: p.letters, Retrier: p.retrier, Engines: p.names}.Kind(),
		bulk.Orchestrations(func() bulk.Purger { return p.runtime })}
	config.Orchestrators = append(config.Orchestrators, bulk.Orchestrators(kinds...)...)
	config.Activities = append(config.Activities, bulk.Activities(kinds...)...)
	for _, d := range p.definitions {
		config.Orchestrators = append(config.Orchestrators, d.Orchestrator)
		config.Activities = append(append(config.Activities, d.Operations...), d.Activities...)
	}
	for _, o := range config.Orchestrators {
		p.orchestrators = append(p.orchestrators, o.Name())
	}
	p.runtime, err = orchestrator.New(config)
	return err
}

// wirePipeline makes the way of a message.
func (p *parts) wirePipeline() (err error) {
	p.pipeline, err = engine.NewPipeline(engine.Config{Definitions: p.definitions, Runtime: p.runtime, History: p.history, DeadLetters: p.letters, Queues: p.stores.queues,
		HostMaxDequeueCount: p.settings.Host.MaxDequeueCount, Claims: p.claims, Locks: p.stores.registry, Log: p.log})
	return err
}

// queues are the functions of the engines' and of the runtime's queues.
func (p *parts) queues() map[string]trigger.Queue {
	functions := runtimeQueues(p.runtime, p.pipeline)
	for _, d := range p.definitions {
		if d.Name == alerts.Engine { // the standard has a name of its own for its function
			functions["alert-processor"] = trigger.Queue{Queue: d.Queue, Parameter: messageParameter, Handle: p.pipeline.Handle}
			functions["alert-processor-poison"] = trigger.Queue{Queue: d.Queue + engine.PoisonSuffix, Parameter: messageParameter, Handle: p.pipeline.HandlePoison}
			continue
		}
		subscribe(functions, d.Name+"-queue", d.Queue, p.pipeline.Handle, p.pipeline.HandlePoison)
	}
	return functions
}

// timers are the functions of what is done on schedule.
func (p *parts) timers() map[string]trigger.Timer {
	s := p.settings
	sweeps := sweeper{runtime: p.runtime, list: p.list, locks: p.locks, log: p.log}
	ended := &purger{runtime: p.runtime, locks: p.locks, log: p.log, now: time.Now, keep: s.Retention}
	blobs := &blobSweeps{keep: s.BlobAge, now: time.Now, sweeps: []blobSweep{p.pipeline.SweepClaims, p.pipeline.SweepPayloads, p.events.admin.SweepPayloads, p.events.sweepData}}
	handlers := map[string]trigger.TimerHandler{"orchestration-sweep-timer": sweeps.handle, purgeTimer: ended.handle,
		blobTimer: retention{job: blobTimer, slice: blobs.slice, locks: p.locks, log: p.log}.handle}
	rule := engine.Retention{Engines: p.names}
	for function, slice := range map[string]func(context.Context, engine.Retention, time.Time, int) (int, bool, error){
		"dlq-retention-timer": p.letters.Retention, "history-retention-timer": p.history.Retention, taskTimer: taskRetention(p.runtime.Tasks(), s.Tasks.Retention),
	} {
		handlers[function] = retention{job: function, slice: rows(rule, slice), locks: p.locks, log: p.log}.handle
	}
	timers := map[string]trigger.Timer{}
	for function, handle := range handlers {
		timers[function] = trigger.Timer{Parameter: timerParameter, Handle: handle}
	}
	maps.Copy(timers, slots(s.Context, p.stores))
	maps.Copy(timers, schedules(s.Rotations, p.definitions, p.stores.queues, p.log))
	return timers
}

// web is what the program answers over HTTP.
func (p *parts) web() (func(e *echo.Echo) error, error) {
	s := p.settings
	snapshot := metrics.Cached(outbox.NewMonitor(p.events.outbox).Snapshot, 0, nil)
	census, lag := states(p.list), metrics.CachedLag(p.list.RepairLag, 0, nil)
	probes, err := health.New(health.Config{Tables: p.stores.tables, Table: outbox.DefaultTable, Queues: p.stores.queues, Queue: outbox.DefaultQueue,
		Outbox: snapshot, Stalled: stalled(census), Damaged: damaged(p.runtime), ListLag: lag, Thresholds: s.Health.Thresholds, Timeout: s.Health.Timeout, Log: p.log})
	if err := errors.Join(err, p.counted.Runtime(p.runtime.Counts), p.counted.Engines(p.pipeline.Count), p.counted.Pollers(p.pollers.counters)); err != nil {
		return nil, err
	}
	p.counted.Collect(&collector{locks: p.locks, log: p.log, now: time.Now}, snapshot)
	p.counted.Orchestrations(census, p.orchestrators)
	p.counted.Damaged(damaged(p.runtime))
	p.counted.ListRepair(lag)
	doors, err := intakes(s.Outside, s.Context, intake.Config{Queues: p.stores.queues, Claims: p.claims, Log: p.log})
	if err != nil {
		return nil, err
	}
	config := api.Config{History: p.history, DeadLetters: p.letters, Engines: p.names, Log: p.log,
		Outbox: p.events.admin, Operations: bulk.NewOperations(p.runtime, nil), Snapshot: snapshot, Metrics: p.counted, Health: probes,
		Retrier: p.retrier, Orchestrations: p.pipeline.Runs, Runtime: p.runtime, Admit: p.pipeline.Admit, List: p.list.List, EasyAuth: s.EasyAuth,
		Tasks: p.runtime.Tasks(), HomeTenant: s.Tasks.HomeTenant, AdminRole: s.Tasks.AdminRole}
	return func(e *echo.Echo) error {
		if s.Context == publisher {
			e.GET(challengePath, echo.WrapHandler(acme.HTTP01{Tables: p.stores.tables}))
		}
		return errors.Join(api.Register(e, config), intake.Register(e, doors),
			durable.Register(e, durable.Config{Runtime: p.runtime, Admit: p.pipeline.Admit, List: p.list.List, Log: p.log}))
	}, nil
}

// start creates what is missing in storage.
func (p *parts) start(ctx context.Context) error {
	var errs []error
	for _, prepare := range []func(context.Context) error{p.runtime.Prepare, p.list.Prepare, p.pipeline.Prepare, p.locks.CreateTable, p.stores.prepareVault,
		p.stores.registry.CreateTable, p.events.prepare, p.pollers.prepare} {
		errs = append(errs, prepare(ctx))
	}
	for _, d := range p.definitions {
		for _, table := range d.Tables {
			errs = append(errs, p.stores.tables.CreateTable(ctx, table))
		}
	}
	return errors.Join(errs...)
}

func (p *parts) close() {
	p.list.Close()
	p.pollers.close()
	p.events.transports.close()
	p.settings.Storage.CloseIdleConnections()
}

// runtimeQueues are the functions of the runtime's own queues.
func runtimeQueues(rt *orchestrator.Runtime, p *engine.Pipeline) map[string]trigger.Queue {
	functions := map[string]trigger.Queue{}
	subscribe(functions, "orchestration-signal", rt.SignalQueue(), p.HandleSignal, p.HandleSignalPoison)
	subscribe(functions, "orchestration-schedule", rt.ScheduleQueue(), p.HandleSignal, p.HandleSignalPoison)
	subscribe(functions, "orchestration-activity", rt.ActivityQueue(), p.HandleActivities, p.HandleActivitiesPoison)
	return functions
}

// subscribe adds the functions of a queue and of its poison queue.
func subscribe(functions map[string]trigger.Queue, name, queue string, handle, poison trigger.QueueHandler) {
	functions[name+"-trigger"] = trigger.Queue{Queue: queue, Parameter: messageParameter, Handle: handle}
	functions[name+"-poison-trigger"] = trigger.Queue{Queue: queue + engine.PoisonSuffix, Parameter: messageParameter, Handle: poison}
}
