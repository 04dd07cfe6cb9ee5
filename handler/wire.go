package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/handler/api/metrics"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/deadevent"
	"github.com/vibedata/roundhouse/handler/direct"
	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/handler/durable"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/handler/intake"
	"github.com/vibedata/roundhouse/handler/metricpush"
	"github.com/vibedata/roundhouse/handler/preparation"
	"github.com/vibedata/roundhouse/handler/queueprobe"
	"github.com/vibedata/roundhouse/handler/quota"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/tables/hostlock"
	"github.com/vibedata/roundhouse/tracing"
)

// parts are the parts of the program, in the order of their construction.
type parts struct {
	app      App
	settings settings.Settings
	reader   *settings.Reader
	log      *slog.Logger
	platform Platform
	// direct replaces the platform's queues for messages that the process handles immediately after sending them.
	direct *direct.Store
	// placement is below the platform's tables: it knows the tables of history and dead letters.
	placement *engine.Placement
	sealed    *payloads
	// makeVault creates the replacement of the vault on a developer's machine.
	makeVault func(context.Context) error
	// preparation is the work that must be done before anything else.
	preparation *preparation.Preparation
	// toBeTold means that a problem is to be reported to operators at each start.
	toBeTold atomic.Bool
	history  *engine.History
	letters  *engine.DeadLetters
	counted  *metrics.Metrics
	push     *metricpush.Pusher
	locks    hostlock.Locks
	claims   *engine.Claims
	audit    *audit.Log
	refusals *quota.Sampler

	events      *events
	definitions []engine.Definition
	pollers     *pollers
	retrier     *engine.Retrier
	schedules   *schedule.Scheduler
	// names are the names in history and dead letters: the engines, and other sources of rows.
	names []string

	// traces is nil without a destination.
	traces *tracing.Tracer

	// node is this process among those of the app.
	node       *nodes.Node
	runtime    *orchestrator.Runtime
	operations *bulk.Operations
	probe      *queueprobe.Probe
	list       *catalog.Catalog
	pipeline   *engine.Pipeline
	// orchestrators are the names of the runtime's orchestrators.
	orchestrators []string
	// useless are the settings that can never work.
	useless []string
}

// wire builds a program from its settings. It does not use the network: that is left to the program's Preparation.
func (a App) wire(r *settings.Reader, s settings.Settings, log *slog.Logger) (program, error) {
	platform, prepare, err := openPlatform(r, s, log)
	if err != nil {
		return program{}, err
	}
	return a.assemble(s, platform, prepare)
}

// assemble builds the program over a platform.
func (a App) assemble(s settings.Settings, platform Platform, prepare func(context.Context) error) (program, error) {
	p := &parts{app: a, settings: s, reader: platform.Settings, log: platform.Log, platform: platform, makeVault: prepare, counted: metrics.New()}
	p.place(s)
	var err error
	if p.sealed, err = sealPayloads(&p.platform, platform.keys, s.PayloadKey); err != nil {
		return program{}, err
	}
	sealed, platform := p.sealed, p.platform
	p.direct = direct.New(direct.Config{Queues: platform.Queues, Limit: s.Direct, Log: platform.Log})
	p.history, p.letters = engine.NewHistory(platform.Tables, ""), engine.NewDeadLetters(platform.Tables, "")
	p.locks = hostlock.Locks{Tables: platform.Tables, Node: func() string { return p.node.Name() }}
	p.claims, p.audit = engine.NewClaims(platform.Blobs, ""), &audit.Log{Tables: platform.Tables}
	p.refusals = quota.NewSampler(p.counted.Refusals())
	for _, part := range []func() error{p.wireNode, p.wireTraces, p.wireEngines, p.wireSchedules, p.wireRuntime, p.wirePipeline} {
		if err := part(); err != nil {
			return program{}, err
		}
	}
	p.preparation = p.preparations()
	p.platform.keeper.Use(p.preparation.Again)
	out := program{Queues: map[string]trigger.Queue{}, Timers: map[string]trigger.Timer{}, Preparation: p.preparation, Close: p.close,
		Gate: drain.NewGate(drain.Store{Tables: p.platform.Tables}, p.runtime.Node(), trigger.ErrClosed, p.log), Platform: p.platform, Runtime: p.runtime}
	out.Settled = p.events.dispatcher.Settled
	out.Traces = p.traces
	out.Metrics, p.push = p.counted, p.pusher()
	out.Quota = quota.New(quota.Config{PerSecond: s.Access.CallerLimit, Refused: p.counted.Quota(), Log: p.log})
	out.Start = p.push.Start
	out.Leave = func(ctx context.Context) error {
		return errors.Join(p.events.close(ctx), p.node.Leave(ctx), p.push.Close(ctx))
	}
	p.onQueues(&out)
	p.events.register(&out, p.sealed.asItCame)
	p.pollers.register(&out, p.counted.Ticks())
	out.onHTTP(httpFunctions()...)
	for _, d := range p.definitions {
		out.onHTTP(engineFunctions(d)...)
	}
	sealed.listen(&out, p.runtime.SignalQueue(), p.runtime.ScheduleQueue(), p.runtime.ActivityQueue())
	p.onTimers(&out)
	tracedTimers(out.Timers, p.traces)
	out.Observe, out.Requests = p.doors(&out), p.counted.Requests()
	p.serveDirect(&out)
	out.acknowledgeIn(p.platform.Queues)
	out.Functions = function.Sorted(out.Functions)
	out.Manifest = func() Manifest { return p.manifest(out.Functions) }
	if err := function.Check(out.Functions); err != nil {
		return program{}, fmt.Errorf("functions: %w", err)
	}
	p.useless = p.unusable()
	warnUnusable(p.log, p.useless)
	out.Unusable = p.useless
	if out.API, err = p.web(out.functionQueues()); err != nil {
		return program{}, err
	}
	return out, nil
}

// wireEngines makes the engines, the destinations of their events, and their retries.
func (p *parts) wireEngines() (err error) {
	if p.events, err = wireOutbox(p.settings, p.platform, p.node, p.letters, p.counted.Outbox(), p.traces, p.log); err != nil {
		return err
	}
	p.platform.Outbox, p.platform.Events = p.events.writer, Events{p.events.admin, p.events.writer, p.settings.Outbox.Retention}
	if p.app.Engines != nil {
		p.definitions, err = p.app.Engines(&p.platform)
	}
	if bad := p.reader.Err(); bad != nil {
		return bad // report the missing settings, not their consequences
	}
	errs := []error{err}
	for _, d := range p.definitions {
		errs = append(errs, d.Validate())
	}
	if err = errors.Join(errs...); err != nil {
		return err
	}
	if p.pollers, err = wirePollers(p.settings, p.platform, p.node, p.definitions, p.claims, p.letters, p.log); err != nil {
		return err
	}
	p.pollers.starts[deadevent.Engine] = p.events.owner.Retry
	p.names = append([]string{engine.SignalEngine, deadevent.Engine}, p.pollers.names()...)
	for _, d := range p.definitions {
		p.names = append(p.names, d.Name)
	}
	p.retrier, err = engine.NewRetrier(engine.RetrierConfig{DeadLetters: p.letters, Queues: p.direct, Starts: p.pollers.starts,
		CheckEdit: func(ctx context.Context, l engine.DeadLetter, message []byte) error {
			return p.pipeline.CheckEdit(ctx, l, message)
		}}) // which exists when that runs
	return err
}

// cachedEvents bounds the memory for waiting orchestrations: an event takes some hundred bytes with its data.
const cachedEvents = 50_000

// wireRuntime makes the runtime. Some of its activities use the runtime itself, which exists when they run.
func (p *parts) wireRuntime() (err error) {
	runtime := func() *orchestrator.Runtime { return p.runtime }
	if p.list, err = catalog.New(catalog.Config{Tables: p.platform.Tables, Runtime: runtime, Log: p.log}); err != nil {
		return err
	}
	config := orchestrator.Config{Tables: p.platform.Tables, Blobs: p.platform.Blobs, Queues: p.direct, Log: p.log, Nodes: p.node, CachedEvents: cachedEvents, StatusChanged: p.list.Record, Publish: p.events.publish,
		Ended: func(ctx context.Context, out orchestrator.Outcome) error {
			return errors.Join(p.pipeline.Ended(ctx, out), p.operationEnded(ctx, out))
		},
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
		config.Orchestrators = append(config.Orchestrators, d.Orchestrators()...)
		config.Activities = append(append(config.Activities, d.Operations...), d.Activities...)
	}
	traced(&config, p.traces)
	for _, o := range config.Orchestrators {
		p.orchestrators = append(p.orchestrators, o.Name())
	}
	counted := p.counted.Activities(p.definitions)
	for i, a := range config.Activities {
		config.Activities[i] = counted(a)
	}
	if p.runtime, err = orchestrator.New(config); err == nil {
		p.operations = bulk.NewOperations(p.runtime, nil)
		p.probe, err = queueprobe.New(queueprobe.Config{Tables: p.platform.Tables, Table: hostlock.DefaultTable, Queues: p.platform.Queues, Queue: p.runtime.SignalQueue(), Log: p.log})
	}
	return err
}

// wirePipeline makes the pipeline of messages.
func (p *parts) wirePipeline() (err error) {
	var names []string
	for _, d := range p.definitions {
		names = append(names, d.Name)
	}
	p.pipeline, err = engine.NewPipeline(engine.Config{Definitions: p.definitions, Runtime: p.runtime, History: p.history, DeadLetters: p.letters, Queues: p.platform.Queues,
		HostMaxDequeueCount: p.settings.Host.MaxDequeueCount, Claims: p.claims, Locks: p.platform.Registry, Nodes: p.node, Observe: observers(p.counted.Engines(names...), tellDelivery(p.traces)), Log: p.log})
	return err
}

// web returns the HTTP endpoints of the program. queues are the program's queues.
func (p *parts) web(queues []string) (func(e *echo.Echo) error, error) {
	s := p.settings
	observed, err := p.observe(queues)
	if err != nil {
		return nil, err
	}
	config := api.Config{History: p.history, DeadLetters: p.letters, Engines: p.names, Log: p.log,
		Outbox: p.events.admin, Operations: p.operations, Snapshot: observed.snapshot, Backlog: p.events.dispatcher.Backlog, Metrics: p.counted, Health: observed.probes,
		Retrier: p.retrier, RunID: p.pipeline.RunID, EventID: p.events.eventID, Runtime: p.runtime, Admit: p.pipeline.Admit, List: p.list.List,
		Descriptions: p.descriptions(), Tasks: p.runtime.Tasks(), Schedules: p.schedules, Result: p.pipeline.Result, Nodes: p.listNodes, Pollers: &p.pollers.admin, PollerCounts: p.pollers.counters, Consumers: p.consumers(), Credentials: observed.credentials, Registry: p.platform.Registry, Placement: p.placement, Door: p.door("api"), Owner: p.pipeline.Owner}
	timeout := s.Host.RequestTimeout(durable.DefaultTimeout)
	return func(e *echo.Echo) error {
		for _, d := range p.definitions {
			mount(e, d.Endpoints, timeout, p.ready)
		}
		return errors.Join(api.Register(e, config),
			intake.Register(e, intake.Config{Queues: p.direct, Claims: p.claims, Engines: p.definitions, Ready: p.ready, Log: p.log}),
			p.openConsole(e),
			durable.Register(e, durable.Config{PublicURL: s.PublicURL, Timeout: timeout, Runtime: p.runtime, Admit: p.pipeline.Admit, List: p.list.List, Door: p.door("durable"), Owners: api.Owners{Registry: p.platform.Registry, Engine: p.pipeline.Owner}, Log: p.log}))
	}, nil
}

// openConsole registers the console, which calls the other endpoints.
func (p *parts) openConsole(e *echo.Echo) error {
	c, err := console.New(console.Config{API: e, Control: p.settings.Access.Control})
	if err != nil {
		return err
	}
	e.Any(console.Root, echo.WrapHandler(c))
	e.Any(console.Root+"/*", echo.WrapHandler(c))
	return nil
}

// consumers returns the consumers of the engines that rotate credentials.
func (p *parts) consumers() map[string]*consumers.Consumers {
	all := map[string]*consumers.Consumers{}
	for _, d := range p.definitions {
		if d.Consumers != nil {
			all[d.Name] = d.Consumers
		}
	}
	return all
}

// door returns an HTTP entry point of the program.
func (p *parts) door(name string) access.Door {
	return access.Door{Control: p.settings.Access.Control, Audit: p.audit, Name: name, Ready: p.ready, Refusals: p.refusals, Log: p.log}
}

// requestPatience is the time that a request waits for storage when the program starts: the usual duration of a start
// with storage.
const requestPatience = 3 * time.Second

// ready waits for a moment until storage is prepared.
func (p *parts) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	return p.preparation.Await(ctx)
}

func (p *parts) close() {
	p.leavePush()
	p.direct.Close()
	if err := p.events.close(context.Background()); err != nil {
		p.log.Warn("events are left to others", "error", err)
	}
	if p.runtime != nil {
		p.runtime.Close()
	}
	p.node.Close()
	p.list.Close()
	p.pollers.close()
	p.events.transports.close()
	p.closeTraces()
	p.settings.Storage.CloseIdleConnections()
}
