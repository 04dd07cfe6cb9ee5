package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/admin"
	"github.com/vibedata/roundhouse/poller/sink"
	"github.com/vibedata/roundhouse/poller/sources"
	"github.com/vibedata/roundhouse/poller/sqlsource"
	"github.com/vibedata/roundhouse/services/secrets"
)

// pollerJob is a poller and its timer function. The first possible tick opens its source: an unreachable database or
// secret blocks only this poller.
type pollerJob struct {
	setting poller.Setting
	source  sources.Config
	config  poller.RunnerConfig
	dsn     func(context.Context) (string, error)

	mu     sync.Mutex
	runner *poller.Runner
	open   poller.Source

	count pollerCount
	// failures records that the source could not be opened: no runner exists to record it.
	failures poller.TickFailures
}

// pollers are the pollers of the program.
type pollers struct {
	jobs   []*pollerJob
	stores map[string]poller.Store
	starts map[string]engine.RetryFunc
	// admin reads and changes them for operators.
	admin admin.Admin
}

// wirePollers makes the jobs. Errors are those of definitions; it sends no request.
func wirePollers(s settings.Settings, with Platform, node poller.Node, definitions []engine.Definition, claims *engine.Claims, letters *engine.DeadLetters,
	log *slog.Logger) (*pollers, error) {
	p := &pollers{starts: map[string]engine.RetryFunc{}, stores: map[string]poller.Store{
		poller.StateBlob: poller.BlobStore{Blobs: with.Blobs}, poller.StateTable: poller.TableStore{Tables: with.Tables}}}
	p.admin = admin.Admin{Blob: p.stores[poller.StateBlob], Table: p.stores[poller.StateTable], Settings: s.Pollers,
		DSN: func(ctx context.Context, s poller.Setting) (string, error) {
			return connection(s.Connection, with)(ctx)
		}}
	var errs []error
	for _, setting := range s.Pollers {
		j := &pollerJob{setting: setting, dsn: connection(setting.Connection, with), failures: poller.TickFailures{Store: p.stores[setting.State], Poller: setting.Name}}
		var err error
		if j.source, err = sources.Decode(setting.Source); err != nil {
			errs = append(errs, fmt.Errorf("%s: poller %s: %w", settings.Pollers, setting.Name, err))
			continue
		}
		handler, err := sinkOf(setting, with, definitions, claims)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		j.config = poller.RunnerConfig{Name: setting.Name, Store: p.stores[setting.State], Handler: handler, Options: setting.Options, Node: node, Log: log}
		j.count.begin(setting.Options.WithDefaults().BatchSize)
		if !setting.NoQuarantine {
			j.config.Quarantine = sink.DeadLetters(letters, setting)
		}
		p.jobs = append(p.jobs, j)
		p.starts[sink.EngineName(setting.Name)] = sink.Retry(handler)
	}
	return p, errors.Join(errs...)
}

// sinkOf returns the destination of a poller's rows.
func sinkOf(s poller.Setting, with Platform, definitions []engine.Definition, claims *engine.Claims) (poller.Handler, error) {
	if s.Outbox != nil {
		return sink.Outbox{Target: *s.Outbox, Writer: with.Outbox}, nil
	}
	at := slices.IndexFunc(definitions, func(d engine.Definition) bool { return d.Name == s.Engine.Engine })
	if at < 0 {
		return nil, fmt.Errorf("%s: poller %s: there is no engine %q in this deployment context", settings.Pollers, s.Name, s.Engine.Engine)
	}
	return sink.Engine{Target: *s.Engine, Queue: definitions[at].Queue, Queues: with.Queues, Claims: claims}, nil
}

// connection returns a function that gets a connection string: from the environment, or the newest usable version in
// the vault.
func connection(c poller.Connection, with Platform) func(context.Context) (string, error) {
	if c.Setting != "" {
		return func(context.Context) (string, error) {
			dsn := with.Settings.Text(c.Setting)
			if dsn == "" {
				return "", fmt.Errorf("the setting %s is not set: set it to the connection string", c.Setting)
			}
			return dsn, nil
		}
	}
	return func(ctx context.Context) (string, error) {
		versions, err := with.Secrets.Versions(ctx, c.Secret)
		if err != nil {
			return "", fmt.Errorf("look up the secret %s: %w", c.Secret, err)
		}
		for _, version := range slices.Backward(versions) {
			if version.Enabled {
				value, err := with.Secrets.Value(ctx, c.Secret, version.Version)
				return string(value), err
			}
		}
		return "", fmt.Errorf("the secret %s has no usable version: %w", c.Secret, secrets.ErrNotFound)
	}
}

// handle runs the poller until no work is left, or its time is over. Work of another process is no error.
func (j *pollerJob) handle(ctx context.Context, _ trigger.TimerDelivery) error {
	runner, err := j.start(ctx)
	if err != nil {
		j.count.unopened()
		return errors.Join(err, j.failures.Add(ctx, err))
	}
	j.failures.Forget() // the runner itself removes the record, when its tick succeeds
	_, err = runner.Tick(ctx)
	if errors.Is(err, sqlsource.ErrLogin) || errors.Is(err, sqlsource.ErrConnection) {
		j.stop() // the next tick reads the connection string again
	}
	return err
}

// start opens the source, if it is not open.
func (j *pollerJob) start(ctx context.Context) (*poller.Runner, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.runner != nil {
		return j.runner, nil
	}
	dsn, err := j.dsn(ctx)
	if err != nil {
		return nil, fmt.Errorf("poller %s: %w", j.setting.Name, err)
	}
	open, err := j.source.Open(dsn)
	if err != nil {
		return nil, fmt.Errorf("poller %s: %w", j.setting.Name, err)
	}
	config := j.config
	config.Source = open
	runner, err := poller.NewRunner(config)
	if err != nil {
		return nil, errors.Join(err, open.Close())
	}
	j.runner, j.open = runner, open
	j.count.opened(runner)
	return runner, nil
}

// stop closes the source.
func (j *pollerJob) stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open != nil {
		_ = j.open.Close() // its state was read-only
	}
	j.runner, j.open = nil, nil
	j.count.closed()
}

// names returns the names of their rows in the dead letters.
func (p *pollers) names() []string {
	var names []string
	for _, j := range p.jobs {
		names = append(names, sink.EngineName(j.setting.Name))
	}
	return names
}

// register adds the timer functions. took receives the duration of each run.
func (p *pollers) register(out *program, took func(ctx context.Context, poller string, took time.Duration)) {
	for _, j := range p.jobs {
		out.onTimer(j.setting.Function(), j.setting.Schedule, func(ctx context.Context, d trigger.TimerDelivery) error {
			began := time.Now()
			err := j.handle(ctx, d)
			took(ctx, j.setting.Name, time.Since(began))
			return err
		})
	}
}

// prepare creates the storage of state documents.
func (p *pollers) prepare(ctx context.Context) error {
	used := map[string]bool{}
	for _, j := range p.jobs {
		used[j.setting.State] = true
	}
	var errs []error
	for state := range used {
		errs = append(errs, p.stores[state].Create(ctx))
	}
	return errors.Join(errs...)
}

func (p *pollers) close() {
	for _, j := range p.jobs {
		j.stop()
	}
}
