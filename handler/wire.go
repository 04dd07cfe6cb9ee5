package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/certificates"
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
	"github.com/vibedata/roundhouse/hostlock"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/registry"
	"github.com/vibedata/roundhouse/secrets"
	"github.com/vibedata/roundhouse/tables"
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

// wire builds the program out of its settings. It does not go to the network: that is left to the app's Start.
func wire(_ context.Context, s Settings, log *slog.Logger) (app, error) {
	stores, err := openStores(s)
	if err != nil {
		return app{}, err
	}
	history, deadLetters := engine.NewHistory(stores.tables, ""), engine.NewDeadLetters(stores.tables, "")
	counted := metrics.New()
	events, err := wireOutbox(s, stores, deadLetters, counted.Outbox(), log)
	if err != nil {
		return app{}, err
	}
	definitions, err := engines(s, stores, eventPublisher{events.writer}, log)
	if err != nil {
		return app{}, err
	}
	var pipeline *engine.Pipeline // the runtime tells it what ends by a signal, and it needs the runtime
	config := orchestrator.Config{Tables: stores.tables, Blobs: stores.blobs, Queues: stores.queues, Log: log,
		Ended: func(ctx context.Context, out orchestrator.Outcome) error { return pipeline.Ended(ctx, out) }}
	config.Publish = events.publish
	claims := engine.NewClaims(stores.blobs, "")
	polled, err := wirePollers(s, stores, definitions, claims, events.writer, deadLetters, log)
	if err != nil {
		return app{}, err
	}
	polled.starts[outboxEngine] = events.dead.retry
	retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: deadLetters, Queues: stores.queues, Starts: polled.starts})
	if err != nil {
		return app{}, err
	}
	names := append([]string{engine.SignalEngine, outboxEngine, operatorEngine}, polled.names()...)
	for _, d := range definitions {
		names = append(names, d.Name)
	}
	var runtime *orchestrator.Runtime // a kind of operations works on what runs it
	kinds := []bulk.Kind{bulk.Outbox(events.admin), bulk.DeadLetters{Letters: deadLetters, Retrier: retrier, Engines: names}.Kind(),
		bulk.Orchestrations(func() bulk.Purger { return runtime })}
	list, err := catalog.New(catalog.Config{Tables: stores.tables, Runtime: func() *orchestrator.Runtime { return runtime }, Log: log})
	if err != nil {
		return app{}, err
	}
	config.Noted = list.Note
	if err := wireReviews(&config, s.Tasks.ReviewRoles, deadLetters, retrier, func() *orchestrator.Runtime { return runtime }); err != nil {
		return app{}, err
	}
	config.Orchestrators = append(config.Orchestrators, bulk.Orchestrators(kinds...)...)
	config.Activities = append(config.Activities, bulk.Activities(kinds...)...)
	for _, d := range definitions {
		config.Orchestrators = append(config.Orchestrators, d.Orchestrator)
		config.Activities = append(append(config.Activities, d.Operations...), d.Activities...)
	}
	runtime, err = orchestrator.New(config)
	if err != nil {
		return app{}, err
	}
	pipeline, err = engine.NewPipeline(engine.Config{Definitions: definitions, Runtime: runtime, History: history,
		DeadLetters: deadLetters, Queues: stores.queues, HostMaxDequeueCount: s.Host.MaxDequeueCount, Claims: claims, Locks: stores.registry, Log: log})
	if err != nil {
		return app{}, err
	}

	locks := hostlock.Locks{Tables: stores.tables}
	sweeps := sweeper{runtime: runtime, list: list, locks: locks, log: log}
	a := app{Close: func() { list.Close(); polled.close(); events.transports.close(); s.Storage.CloseIdleConnections() }, Queues: runtimeQueues(runtime, pipeline),
		Timers: map[string]trigger.Timer{"orchestration-sweep-timer": {Parameter: timerParameter, Handle: sweeps.handle}}}
	events.register(&a)
	polled.register(&a)
	rule := engine.Retention{Engines: names}
	for function, slice := range map[string]func(context.Context, engine.Retention, time.Time, int) (int, bool, error){
		"dlq-retention-timer": deadLetters.Retention, "history-retention-timer": history.Retention,
		taskTimer: taskRetention(runtime.Tasks(), s.Tasks.Retention),
	} {
		r := retention{job: function, slice: rows(rule, slice), locks: locks, log: log}
		a.Timers[function] = trigger.Timer{Parameter: timerParameter, Handle: r.handle}
	}
	left := &blobSweeps{keep: s.BlobAge, now: time.Now, sweeps: []blobSweep{pipeline.SweepClaims, events.admin.SweepPayloads, events.sweepData}}
	a.Timers[blobTimer] = trigger.Timer{Parameter: timerParameter, Handle: retention{job: blobTimer, slice: left.slice, locks: locks, log: log}.handle}
	ended := &purger{runtime: runtime, locks: locks, log: log, now: time.Now, keep: s.Retention}
	a.Timers[purgeTimer] = trigger.Timer{Parameter: timerParameter, Handle: ended.handle}
	maps.Copy(a.Timers, slots(s.Context, stores))
	maps.Copy(a.Timers, schedules(s.Rotations, definitions, stores.queues, log))
	for _, d := range definitions {
		if d.Name == alerts.Engine { // the standard has a name of its own for its function
			a.Queues["alert-processor"] = trigger.Queue{Queue: d.Queue, Parameter: messageParameter, Handle: pipeline.Handle}
			a.Queues["alert-processor-poison"] = trigger.Queue{Queue: d.Queue + engine.PoisonSuffix, Parameter: messageParameter, Handle: pipeline.HandlePoison}
			continue
		}
		subscribe(a.Queues, d.Name+"-queue", d.Queue, pipeline.Handle, pipeline.HandlePoison)
	}
	snapshot := metrics.Cached(outbox.NewMonitor(events.outbox).Snapshot, 0, nil)
	probes, err := health.New(health.Config{Tables: stores.tables, Table: outbox.DefaultTable, Queues: stores.queues, Queue: outbox.DefaultQueue,
		Outbox: snapshot, Thresholds: s.Health.Thresholds, Timeout: s.Health.Timeout, Log: log})
	if err := errors.Join(err, counted.Runtime(runtime.Counts), counted.Engines(pipeline.Count), counted.Pollers(polled.counters)); err != nil {
		return app{}, err
	}
	counted.Collect(&collector{locks: locks, log: log, now: time.Now}, snapshot)
	web := api.Config{History: history, DeadLetters: deadLetters, Engines: names, Log: log,
		Outbox: events.admin, Operations: bulk.NewOperations(runtime, nil), Snapshot: snapshot, Metrics: counted, Health: probes,
		Retrier: retrier, Orchestrations: pipeline.Runs, Runtime: runtime, Admit: pipeline.Admit, List: list.List, EasyAuth: s.EasyAuth,
		Tasks: runtime.Tasks(), HomeTenant: s.Tasks.HomeTenant, AdminRole: s.Tasks.AdminRole}
	doors, err := intakes(s.Outside, s.Context, intake.Config{Queues: stores.queues, Claims: claims, Log: log})
	if err != nil {
		return app{}, err
	}
	a.API = func(e *echo.Echo) error {
		if s.Context == publisher {
			e.GET(challengePath, echo.WrapHandler(acme.HTTP01{Tables: stores.tables}))
		}
		return errors.Join(api.Register(e, web), intake.Register(e, doors),
			durable.Register(e, durable.Config{Runtime: runtime, Admit: pipeline.Admit, List: list.List, Log: log}))
	}
	a.Start = func(ctx context.Context) error {
		errs := []error{runtime.Prepare(ctx), list.Prepare(ctx), pipeline.Prepare(ctx), sweeps.locks.CreateTable(ctx), stores.prepareVault(ctx), stores.registry.CreateTable(ctx), events.prepare(ctx), polled.prepare(ctx)}
		for _, d := range definitions {
			for _, table := range d.Tables {
				errs = append(errs, stores.tables.CreateTable(ctx, table))
			}
		}
		return errors.Join(errs...)
	}
	return a, nil
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

// stores are the services that the program keeps its state in.
type stores struct {
	tables tables.Store
	queues queues.Store
	blobs  blobs.Store
	// vault keeps secrets, and gives their values to those who use them themselves.
	vault        vault
	certificates certificates.Store
	registry     *registry.Registry
	// prepareVault creates what the secret and certificate stores need.
	prepareVault func(context.Context) error
}

// vault is a secret store that gives out values, too.
type vault interface {
	secrets.Store
	secrets.Reader
}

func openStores(s Settings) (stores, error) {
	t, tablesErr := tables.NewAzure(s.Storage)
	q, queuesErr := queues.NewAzure(s.Storage)
	b, blobsErr := blobs.NewAzure(s.Storage)
	if err := errors.Join(tablesErr, queuesErr, blobsErr); err != nil {
		return stores{}, err
	}
	st := stores{tables: t, queues: q, blobs: b, registry: registry.New(t, ""), prepareVault: func(context.Context) error { return nil }}
	if s.KeyVaultURL == "" {
		// LoadSettings lets this happen with the emulator only.
		st.vault, st.certificates = secrets.NewDevelopment(t), certificates.NewDevelopment(t)
		st.prepareVault = func(ctx context.Context) error {
			return errors.Join(t.CreateTable(ctx, secrets.DevelopmentTable), t.CreateTable(ctx, certificates.DevelopmentTable))
		}
		return st, nil
	}
	credential, err := s.Storage.Identity()
	if err != nil {
		return stores{}, err
	}
	kept, secretsErr := secrets.NewKeyVault(s.KeyVaultURL, credential, nil)
	issued, certificatesErr := certificates.NewKeyVault(s.KeyVaultURL, credential, nil)
	st.vault, st.certificates = kept, issued
	return st, errors.Join(secretsErr, certificatesErr)
}
