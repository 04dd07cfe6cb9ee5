package timeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
)

// These bound a page's reads, and parallel the concurrent ones.
const (
	maxReads   = 300 // storage requests, beyond which data is omitted
	maxRows    = 1000
	maxRuns    = 50
	maxDepth   = 8 // of runs that call runs
	roundPages = 10
	roundPage  = 1000
	taskRows   = 1000
	parallel   = 8
)

// gathering collects all items of a correlation id.
type gathering struct {
	Config
	q         Query
	items     []Item
	entries   []engine.Entry
	letters   []engine.DeadLetter
	listed    []orchestrator.Summary
	begun     []orchestrator.Summary // found by their ids
	reads     atomic.Int64
	truncated atomic.Bool
}

func newGathering(c Config, q Query) *gathering { return &gathering{Config: c, q: q} }

// mayRead takes a request from the page's budget; without any left, the page is truncated.
func (g *gathering) mayRead() bool {
	if g.reads.Add(1) <= maxReads {
		return true
	}
	g.truncated.Store(true)
	return false
}

func (g *gathering) sees(owner string) bool { return tenant.Sees(g.q.TenantID, owner) }

// gather reads the sources: first those with an index by correlation id, then the runs that these name, then the data
// that the runs name.
func (g *gathering) gather(ctx context.Context) error {
	if err := together(ctx, g.readHistory, func(ctx context.Context) (err error) {
		g.letters, err = g.lettersOf(ctx, g.Engines, g.q.CorrelationID)
		return err
	}, g.readList, g.readBegun); err != nil {
		return err
	}
	told, err := g.readRuns(ctx)
	if err != nil {
		return err
	}
	for _, t := range told {
		g.items = append(g.items, t.items...)
		g.letters = append(g.letters, t.letters...)
	}
	for i := range g.entries {
		e := &g.entries[i]
		g.items = append(g.items, Item{ID: "history/" + e.Engine + "/" + e.RowKey, At: e.CreatedAtUtc, Kind: KindHistory, Engine: e.Engine, History: e})
	}
	changes, err := g.tellLetters(ctx)
	if err != nil {
		return err
	}
	g.items = append(g.items, changes...)
	return g.tellDeliveries(ctx)
}

// together runs functions concurrently.
func together(ctx context.Context, all ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, fn := range all {
		group.Go(func() error { return fn(ctx) })
	}
	return group.Wait()
}

func (g *gathering) readHistory(ctx context.Context) error {
	f := engine.HistoryFilter{Engines: g.Engines, TenantID: g.q.TenantID, CorrelationID: g.q.CorrelationID, Limit: engine.MaxLimit}
	for {
		page, err := g.History.List(ctx, f)
		if err != nil {
			return err
		}
		g.reads.Add(int64(len(g.Engines)))
		g.entries = append(g.entries, page.Entries...)
		if f.Token = page.Token; f.Token == "" {
			return nil
		}
		if len(g.entries) >= maxRows {
			g.truncated.Store(true)
			return nil
		}
	}
}

// lettersOf returns the dead letters of an id, as in lists.
func (g *gathering) lettersOf(ctx context.Context, engines []string, id string) (all []engine.DeadLetter, err error) {
	f := engine.DeadLetterFilter{Engines: engines, TenantID: g.q.TenantID, CorrelationID: id, Limit: engine.MaxLimit}
	for {
		page, err := g.DeadLetters.List(ctx, f)
		if err != nil {
			return nil, err
		}
		g.reads.Add(int64(len(engines)))
		all = append(all, page.DeadLetters...)
		if f.Token = page.Token; f.Token == "" {
			return all, nil
		}
		if len(all) >= maxRows {
			g.truncated.Store(true)
			return all, nil
		}
	}
}

// readList reads the list of runs; a run is listed slightly after its start.
func (g *gathering) readList(ctx context.Context) error {
	if g.Runs == nil || g.List == nil {
		return nil
	}
	found, next, err := g.List(ctx, orchestrator.Filter{CorrelationID: g.q.CorrelationID, TenantID: g.q.TenantID}, maxRuns, "")
	if err != nil {
		return err
	}
	g.reads.Add(int64(len(found)) + 1)
	if next != "" {
		g.truncated.Store(true)
	}
	g.listed = found
	return nil
}

// readBegun searches the runs of engines whose runs have the correlation id in their names.
func (g *gathering) readBegun(ctx context.Context) error {
	if g.Runs == nil || g.RunID == nil {
		return nil
	}
	found := make([]orchestrator.Summary, len(g.Engines))
	var all []func(context.Context) error
	for i, name := range g.Engines {
		id := g.RunID(name, engine.Message{CorrelationID: g.q.CorrelationID})
		if id == "" {
			continue
		}
		all = append(all, func(ctx context.Context) (err error) {
			found[i], err = g.status(ctx, id)
			return err
		})
	}
	if err := together(ctx, all...); err != nil {
		return err
	}
	g.begun = slices.DeleteFunc(found, func(s orchestrator.Summary) bool {
		return s.ID == "" || s.Orchestrator != "" && s.CorrelationID != g.q.CorrelationID
	})
	return nil
}

// status reads the status of a run: its zero value for a missing one, and only the id of a damaged one, for the
// platform.
func (g *gathering) status(ctx context.Context, id string) (orchestrator.Summary, error) {
	if !g.mayRead() {
		return orchestrator.Summary{}, nil
	}
	s, err := g.Runs.Status(ctx, id)
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		return orchestrator.Summary{}, nil
	case unreadable(err):
		if g.q.TenantID != "" { // its tenant is unknown
			g.truncated.Store(true)
			return orchestrator.Summary{}, nil
		}
		return orchestrator.Summary{ID: id}, nil
	}
	return s, err
}

func unreadable(err error) bool {
	return errors.Is(err, orchestrator.ErrCorrupt) || errors.Is(err, orchestrator.ErrNewerSchema)
}

// run is a run to read. One that is found by its id only has no state yet.
type run struct {
	id, engine string
	state      *orchestrator.Summary
}

// roots returns the runs that were started from outside, each once.
func (g *gathering) roots() (roots, rest []run) {
	for i := range g.begun {
		roots = append(roots, run{g.begun[i].ID, g.engineOf(g.begun[i], ""), &g.begun[i]})
	}
	for i := range g.listed {
		one := run{g.listed[i].ID, g.engineOf(g.listed[i], ""), &g.listed[i]}
		if g.listed[i].Parent == "" {
			roots = append(roots, one)
		} else {
			rest = append(rest, one)
		}
	}
	if g.Runs == nil || g.RunID == nil {
		return roots, rest
	}
	candidate := func(name, instance, tenantID string) {
		if id := g.RunID(name, engine.Message{CorrelationID: g.q.CorrelationID, InstanceID: instance, TenantID: tenantID}); id != "" {
			roots = append(roots, run{id: id, engine: name})
		}
	}
	for _, e := range g.entries {
		candidate(e.Engine, e.InstanceID, e.TenantID)
	}
	for _, l := range g.letters {
		candidate(l.Engine, l.InstanceID, l.TenantID)
	}
	return roots, rest
}

// engineOf returns the engine of a run: its own, or that of its caller, or the one in its id.
func (g *gathering) engineOf(s orchestrator.Summary, caller string) string {
	if slices.Contains(g.Engines, s.Orchestrator) {
		return s.Orchestrator
	}
	name := caller
	for _, e := range g.Engines {
		if caller == "" && len(e) > len(name) && strings.HasPrefix(s.ID, e+"-") {
			name = e
		}
	}
	if name == "" {
		return s.Orchestrator
	}
	return name
}

// engineUnder returns the engine of a run that another one has started, as far as its state is known.
func (g *gathering) engineUnder(caller string, s *orchestrator.Summary) string {
	if s == nil {
		return caller
	}
	return g.engineOf(*s, caller)
}

// readRuns reads the runs and those that they have started, level by level.
func (g *gathering) readRuns(ctx context.Context) (all []*teller, err error) {
	if g.Runs == nil {
		return nil, nil
	}
	roots, rest := g.roots()
	known, seen := map[string]*orchestrator.Summary{}, map[string]bool{}
	for _, one := range rest {
		known[one.id] = one.state
	}
	for depth := 0; len(roots)+len(rest) > 0; depth++ {
		if len(roots) == 0 || depth > maxDepth {
			roots, rest = append(roots, rest...), nil // their callers are gone, or too far up
		}
		level, err := g.readLevel(ctx, g.unread(roots, seen, depth))
		if err != nil {
			return nil, err
		}
		roots = nil
		for _, t := range level {
			all = append(all, t)
			for _, child := range t.children {
				roots = append(roots, run{child, g.engineUnder(t.run.engine, known[child]), known[child]})
			}
		}
	}
	return all, nil
}

// unread returns the runs that were not read before, within the bounds.
func (g *gathering) unread(runs []run, seen map[string]bool, depth int) (level []run) {
	for _, one := range runs {
		if seen[one.id] {
			continue
		}
		if len(seen) == maxRuns || depth > 2*maxDepth {
			g.truncated.Store(true)
			return level
		}
		seen[one.id] = true
		level = append(level, one)
	}
	return level
}

func (g *gathering) readLevel(ctx context.Context, runs []run) ([]*teller, error) {
	told := make([]*teller, len(runs))
	all := make([]func(context.Context) error, len(runs))
	for i, one := range runs {
		all[i] = func(ctx context.Context) (err error) {
			told[i], err = g.readRun(ctx, one)
			return err
		}
	}
	if err := together(ctx, all...); err != nil {
		return nil, err
	}
	return told, nil
}

// readRun reads a run with its tasks and with the dead letters that have its id as correlation id.
func (g *gathering) readRun(ctx context.Context, r run) (*teller, error) {
	t := &teller{g: g, run: r}
	if r.state == nil {
		s, err := g.status(ctx, r.id)
		if err != nil || s.ID == "" {
			return t, err
		}
		t.run.state = &s
		t.run.engine = g.engineOf(s, r.engine)
	}
	if err := g.readRounds(ctx, t); err != nil {
		return nil, err
	}
	t.finish()
	if len(t.items) == 0 {
		return t, nil // it belongs to another correlation id or tenant
	}
	if err := g.tellTasks(ctx, t); err != nil {
		return nil, err
	}
	if err := g.tellActions(ctx, t); err != nil {
		return nil, err
	}
	if !slices.Contains(g.Engines, engine.SignalEngine) || r.id == g.q.CorrelationID || !g.mayRead() {
		return t, nil
	}
	var err error
	t.letters, err = g.lettersOf(ctx, []string{engine.SignalEngine}, r.id)
	return t, err
}

func (g *gathering) readRounds(ctx context.Context, t *teller) error {
	place := ""
	for range roundPages {
		if !g.mayRead() {
			return nil
		}
		rounds, next, err := g.Runs.Rounds(ctx, t.run.id, roundPage, place)
		for _, r := range rounds {
			t.tell(r)
		}
		switch {
		case errors.Is(err, orchestrator.ErrNotFound): // it was purged meanwhile
			return nil
		case unreadable(err):
			t.damaged(err)
			return nil
		case err != nil:
			return err
		}
		if place = next; place == "" {
			return nil
		}
	}
	g.truncated.Store(true)
	return nil
}

// tellLetters returns the items of the dead letters, and of their outcomes.
func (g *gathering) tellLetters(ctx context.Context) (items []Item, err error) {
	seen := map[string]bool{}
	g.letters = slices.DeleteFunc(g.letters, func(l engine.DeadLetter) bool {
		key := l.Engine + "/" + l.RowKey
		again := seen[key]
		seen[key] = true
		return again
	})
	changes := make([][]Item, len(g.letters))
	var all []func(context.Context) error
	for i := range g.letters {
		l := &g.letters[i]
		items = append(items, Item{ID: "deadLetter/" + l.Engine + "/" + l.RowKey, At: l.LastFailureAtUtc, Kind: KindDeadLetter, Engine: l.Engine, DeadLetter: l})
		if l.Status == engine.StatusPending || !g.mayRead() {
			continue
		}
		all = append(all, func(ctx context.Context) error {
			whole, err := g.DeadLetters.Get(ctx, l.Engine, l.RowKey)
			if errors.Is(err, engine.ErrNotFound) {
				return nil
			}
			changes[i] = changesOf(whole)
			return err
		})
	}
	if err := together(ctx, all...); err != nil {
		return nil, err
	}
	return append(items, slices.Concat(changes...)...), nil
}

// changesOf returns the outcomes of a dead letter.
func changesOf(l engine.DeadLetter) (items []Item) {
	add := func(c DeadLetterChange, at int64) {
		c.RowKey = l.RowKey
		items = append(items, Item{ID: "deadLetterChange/" + l.Engine + "/" + l.RowKey + "/" + c.What, At: fromMicros(at), Kind: KindDeadLetterChange, Engine: l.Engine, DeadLetterChange: &c})
	}
	if !l.RetriedAtUtc.IsZero() {
		add(DeadLetterChange{What: "Retried", By: l.RetriedBy, RetryID: l.RetryID, RetryMessageID: l.RetryMessageID}, l.RetriedAtUtc.UnixMicro())
	}
	if !l.ResolvedAtUtc.IsZero() {
		add(DeadLetterChange{What: "Resolved", By: l.ResolvedBy, Notes: l.ResolutionNotes}, l.ResolvedAtUtc.UnixMicro())
	}
	if !l.ExpiredAtUtc.IsZero() {
		add(DeadLetterChange{What: "Expired", By: l.ResolvedBy, Notes: l.ResolutionNotes}, l.ExpiredAtUtc.UnixMicro())
	}
	return items
}

// tellDeliveries reads the outbox for the runs' published events.
func (g *gathering) tellDeliveries(ctx context.Context) error {
	if g.Events == nil || g.EventID == nil {
		return nil
	}
	published := map[string][]*Item{} // those with one key are one event
	for i := range g.items {
		if p := g.items[i].Publication; p != nil && p.EventID != "" && g.sees(p.TenantID) {
			published[p.TenantID+"\n"+p.EventID] = append(published[p.TenantID+"\n"+p.EventID], &g.items[i])
		}
	}
	var all []func(context.Context) error
	found := make([][]Item, 0, len(published))
	for _, same := range published {
		if !g.mayRead() {
			break
		}
		n := len(found)
		found = append(found, nil)
		all = append(all, func(ctx context.Context) error {
			of := same[0].Publication
			record, err := g.Events.Look(ctx, of.TenantID, of.EventID)
			switch {
			case errors.Is(err, outbox.ErrNotFound):
				return nil
			case errors.Is(err, outbox.ErrCorrupt), errors.Is(err, outbox.ErrSchemaVersion):
				g.Log.WarnContext(ctx, "a timeline leaves out the deliveries of an event that cannot be read", "eventId", of.EventID, "error", err.Error())
				g.truncated.Store(true)
				return nil
			case err != nil:
				return err
			}
			for _, i := range same {
				i.deliveredAs(record)
			}
			found[n] = deliveries(record, same[0].Engine)
			return nil
		})
	}
	if err := together(ctx, all...); err != nil {
		return err
	}
	g.items = append(g.items, slices.Concat(found...)...)
	return nil
}
