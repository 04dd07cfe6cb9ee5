package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// patientApp returns an app whose engine waits a day; change makes another version of its code.
func patientApp(change string) App {
	return App{Engines: func(*Platform) ([]engine.Definition, error) {
		before := orchestrator.NewActivity("before"+change, nothing)
		run := func(ctx *orchestrator.Context, _ engine.Request[struct{}]) (struct{}, error) {
			if _, err := before.Call(ctx, struct{}{}).Await(); err != nil {
				return struct{}{}, err
			}
			return struct{}{}, ctx.Sleep(24 * time.Hour)
		}
		name := "patient"
		if change == "gone" {
			name = "impatient"
		}
		return []engine.Definition{{Name: name, Queue: "patient-queue", Orchestrator: engine.Orchestrate(name, run), Operations: []orchestrator.AnyActivity{before}}}, nil
	}}
}

// Before a deployment, the new code is replayed over the orchestrations in progress, and lists those that it would
// stall. Nothing is changed. One of the orchestrations is encrypted.
func TestReplayCommand(t *testing.T) {
	t.Parallel()
	env := emulator.With(settings.Storage, storage.Account(t).ConnectionString(), "FUNCTIONS_CUSTOMHANDLER_PORT", "")
	begin := func(id string, pairs ...string) deployed {
		h, err := New(patientApp(""), Config{Lookup: env.With(append(pairs, "FUNCTIONS_CUSTOMHANDLER_PORT", "0")...).Lookup})
		testenv.OK(t, err)
		t.Cleanup(h.Close)
		testenv.OK(t, h.Start(t.Context()))
		d := deployed{h.program.Runtime}
		d.start(t, "patient", id)
		return d
	}
	plain := begin("patient-replay-1")
	begin("patient-replay-2", "ROUNDHOUSE_PAYLOAD_KEY", "payloads")
	replay := func(ctx context.Context, app App, env settingstest.Environment, args ...string) (code int, out string) {
		var text bytes.Buffer
		code = runner{App: app, Stdout: &text, Stderr: &text}.Run(ctx, append([]string{"replay"}, args...), env.Lookup)
		return code, text.String()
	}
	for name, tt := range map[string]struct {
		app  App
		args []string
		code int
		want []string
	}{
		"the same code":       {patientApp(""), nil, exitOK, []string{"2 orchestrations are under way: 2 go on with this code, 0 would stall"}},
		"one of them":         {patientApp(""), []string{"-limit", "1"}, exitOK, []string{"1 orchestrations are under way: 1 go on"}},
		"another call":        {patientApp("-changed"), nil, exitFailure, []string{"would stall: patient-replay-1 (Running)", "before-changed", "0 go on with this code, 2 would stall"}},
		"without the engine":  {patientApp("gone"), nil, exitFailure, []string{"2 would stall"}},
		"a wrong flag":        {patientApp(""), []string{"-limit", "-1"}, exitUsage, []string{"0 or more"}},
		"an unexpected one":   {patientApp(""), []string{"now"}, exitUsage, []string{"replay takes"}},
		"the help of its own": {patientApp(""), []string{"-h"}, exitOK, []string{"-orchestrator"}},
	} {
		code, out := replay(t.Context(), tt.app, env, append([]string{"-orchestrator", "patient"}, tt.args...)...)
		for _, want := range tt.want {
			if code != tt.code || !strings.Contains(out, want) {
				t.Errorf("%s: exit code %d, want %d and %q in\n%s", name, code, tt.code, want, out)
			}
		}
	}
	for _, id := range []string{"patient-replay-1", "patient-replay-2"} {
		now, err := plain.Get(t.Context(), id)
		if err != nil || now.Status != orchestrator.Running {
			t.Errorf("%s: %v, %v", id, now.Status, err)
		}
		testenv.OK(t, plain.Terminate(t.Context(), id, "the test is over")) // the tests of the package share the account
	}
	// A real account requires no other setting: the error is that it cannot be reached.
	away := env.With(settings.Storage, "DefaultEndpointsProtocol=http;AccountName=acct1;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:1/a;QueueEndpoint=http://127.0.0.1:1/a;TableEndpoint=http://127.0.0.1:1/a")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out := replay(ended, patientApp(""), away); code != exitFailure || strings.Contains(out, "ROUNDHOUSE_") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if code, out := replay(t.Context(), patientApp(""), env.With(settings.Storage, azure.Account{}.String())); code != exitUsage {
		t.Errorf("without storage: exit code %d\n%s", code, out)
	}
}

// The command manifest needs no settings, and prints JSON alone.
func TestManifestCommand(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	r := runner{App: workApp(), Stdout: &out, Stderr: &errs}
	if code := r.Run(t.Context(), []string{"manifest"}, emulator.With(settings.Storage, "nonsense").Lookup); code != exitOK || !strings.HasPrefix(out.String(), "{") || errs.Len() > 0 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	testenv.Equal(t, "exit code", exitUsage, r.Run(t.Context(), []string{"manifest", "now"}, emulator.Lookup))
	broken := runner{App: App{Engines: func(*Platform) ([]engine.Definition, error) { return nil, errors.New("oh") }}, Stdout: &out, Stderr: &errs}
	if code := broken.Run(t.Context(), []string{"manifest"}, emulator.Lookup); code != exitFailure || !strings.Contains(errs.String(), "oh") {
		t.Errorf("exit code %d, %s", code, &errs)
	}
}

// step is a step of a random program: it calls an activity, waits for an event or for some hours, creates a task,
// runs a child, or starts a coroutine. The number distinguishes steps of a kind.
type step struct {
	kind   byte
	number int
}

const stepKinds = "aeshcg"

func randomStep(r *rand.Rand) step { return step{stepKinds[r.IntN(len(stepKinds))], 1 + r.IntN(3)} }

// changed returns another version of a program: one step of it is changed, removed, added, or moved. Sometimes
// nothing is.
func changed(r *rand.Rand, program []step) []step {
	next := slices.Clone(program)
	i := r.IntN(len(next))
	switch r.IntN(6) {
	case 0:
		next[i] = randomStep(r)
	case 1:
		next = slices.Delete(next, i, i+1)
	case 2:
		next = slices.Insert(next, i, randomStep(r))
	case 3:
		j := r.IntN(len(next))
		next[i], next[j] = next[j], next[i]
	case 4:
		next = append(next, randomStep(r))
	}
	return next
}

// programsApp returns an app with an engine for each program.
func programsApp(programs map[string][]step) App {
	return App{Engines: func(*Platform) (all []engine.Definition, err error) {
		for name, program := range programs {
			var activities []orchestrator.AnyActivity
			var calls []*orchestrator.Activity[struct{}, struct{}]
			for n := range 4 {
				call := orchestrator.NewActivity(fmt.Sprintf("%s/%d", name, n), nothing)
				calls, activities = append(calls, call), append(activities, call)
			}
			child := orchestrator.NewOrchestrator(name+"-child", func(ctx *orchestrator.Context, n int) (struct{}, error) {
				_, err := orchestrator.Event[int](ctx, fmt.Sprint("child", n)).Await()
				return struct{}{}, err
			})
			run := func(ctx *orchestrator.Context, _ engine.Request[struct{}]) (struct{}, error) {
				for _, s := range program {
					var err error
					switch s.kind {
					case 'a':
						_, err = calls[s.number].Call(ctx, struct{}{}).Await()
					case 'e':
						_, err = orchestrator.Event[int](ctx, fmt.Sprint("e", s.number)).Await()
					case 's':
						err = ctx.Sleep(time.Duration(s.number) * time.Hour)
					case 'h':
						_, err = orchestrator.AskPerson[json.RawMessage](ctx, orchestrator.HumanTask{Name: fmt.Sprint("task", s.number), Roles: []string{"approver"}}).Await()
					case 'c':
						_, err = child.Call(ctx, s.number).Await()
					case 'g':
						_, err = orchestrator.All(calls[0].Call(ctx, struct{}{}), calls[s.number].Call(ctx, struct{}{}))
					}
					if err != nil {
						return struct{}{}, err
					}
				}
				return struct{}{}, nil
			}
			all = append(all, engine.Definition{Name: name, Queue: name + "-queue", Orchestrator: engine.Orchestrate(name, run), Children: []orchestrator.AnyOrchestrator{child}, Operations: activities})
		}
		return all, nil
	}}
}

// deployments are programs over one storage in memory.
type deployments struct {
	tables *tables.Memory
	queues *queues.Memory
	blobs  *blobs.Memory
}

// deployed is the runtime of an app.
type deployed struct{ *orchestrator.Runtime }

func (d deployed) start(t *testing.T, name, id string) {
	t.Helper()
	testenv.Must(d.Run(t.Context(), orchestrator.Start{ID: id, Orchestrator: name, CorrelationID: id, Input: []byte(`{"correlationId":"` + id + `"}`)}))(t)
}

func (d deployments) deploy(t *testing.T, app App) deployed {
	t.Helper()
	h, err := New(app, Config{Lookup: emulator.Lookup, Tables: d.tables, Queues: d.queues, Blobs: d.blobs})
	testenv.OK(t, err)
	t.Cleanup(h.Close)
	testenv.OK(t, h.Start(t.Context()))
	return deployed{h.program.Runtime}
}

func deliver(t *testing.T, rt *orchestrator.Runtime, id, signal, event string) orchestrator.Status {
	t.Helper()
	out, err := rt.Deliver(t.Context(), orchestrator.Signal{SignalID: id + "-" + signal, InstanceID: id, Type: orchestrator.ExternalSignal, RuntimeProvider: "roundhouse", OccurredAtUtc: time.Now(),
		Payload: orchestrator.Payload{Event: event, Data: []byte("1")}})
	if _, differs := errors.AsType[*orchestrator.DeterminismError](err); err != nil && !differs && !errors.Is(err, orchestrator.ErrUnknownOrchestrator) {
		t.Fatalf("%s: %v", id, err)
	}
	return out.Status
}

// The replay of a new program lists exactly the orchestrations that stall when the new program takes over.
func TestReplayListsWhatStalls(t *testing.T) {
	t.Parallel()
	stalls, goOn, seeds := 0, 0, sample.Seeds(t, 60)
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			sample.Repeat(t)
			s, g := replayListsWhatStalls(t, rand.New(rand.NewPCG(uint64(seed), 7)))
			stalls, goOn = stalls+s, goOn+g
		})
	}
	if len(seeds) == 60 && (stalls < 100 || goOn < 100) {
		t.Errorf("%d stalled, %d went on: the programs are too much alike, or too different", stalls, goOn)
	}
}

func replayListsWhatStalls(t *testing.T, r *rand.Rand) (stalls, goOn int) {
	d := deployments{tables.NewMemory(), queues.NewMemory(), blobs.NewMemory()}
	before, after := map[string][]step{}, map[string][]step{}
	for n := range 4 {
		name := fmt.Sprint("engine", n)
		for range 2 + r.IntN(5) {
			before[name] = append(before[name], randomStep(r))
		}
		if r.IntN(8) > 0 {
			after[name] = changed(r, before[name])
		}
	}
	old := d.deploy(t, programsApp(before))
	for n := range 4 {
		for run := range 3 {
			name := fmt.Sprint("engine", n)
			id := fmt.Sprintf("%s-%d", name, run)
			old.start(t, name, id)
			for n := range r.IntN(8) { // it gets as far as these events allow
				deliver(t, old.Runtime, id, fmt.Sprint(n), fmt.Sprint("e", 1+r.IntN(3)))
			}
		}
	}
	next := d.deploy(t, programsApp(after))
	var out bytes.Buffer
	looked := replays{now: time.Now, out: &out, count: map[string]int{}, asJSON: true}
	testenv.OK(t, looked.run(t.Context(), next.Runtime))
	var report struct {
		Items               []replayFinding
		Checked, WouldStall int
		Groups              []struct{ Count int }
	}
	testenv.OK(t, json.Unmarshal(out.Bytes(), &report))
	found, stalled, live, sum := map[string]string{}, map[string]string{}, 0, 0
	for _, f := range report.Items {
		found[f.ID] = f.Kind
	}
	page, _, err := next.List(t.Context(), orchestrator.Filter{}, 1000, "")
	testenv.OK(t, err)
	for _, s := range page {
		if s.Ended() {
			continue
		}
		live++
		if deliver(t, next.Runtime, s.ID, "poke", "poke") == orchestrator.Stalled {
			stalled[s.ID] = findingDiffers
			if after[strings.TrimSuffix(s.Orchestrator, "-child")] == nil {
				stalled[s.ID] = findingUnknown
			}
		}
	}
	testenv.Equal(t, fmt.Sprintf("before %v, after %v, stalled against listed", before, after), stalled, found)
	for _, g := range report.Groups {
		sum += g.Count
	}
	if report.Checked != live || report.WouldStall != len(stalled) || sum != len(stalled) {
		t.Errorf("%d checked of %d, %d would stall and %d in groups, of %d", report.Checked, live, report.WouldStall, sum, len(stalled))
	}
	return len(stalled), live - len(stalled)
}

// A replay writes nothing: its stores refuse writes.
func TestReplayReadsOnly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, payloads := readTables{tables.NewMemory()}, readBlobs{blobs.NewMemory()}
	for name, err := range map[string]error{
		"CreateTable": store.CreateTable(ctx, "t"), "Apply": store.Apply(ctx, "t"),
		"CreateContainer": payloads.CreateContainer(ctx, "c"), "Put": payloads.Put(ctx, "c", "n", nil), "PutIf": payloads.PutIf(ctx, "c", "n", nil, ""),
		"Delete": payloads.Delete(ctx, "c", "n"), "DeleteVersion": payloads.DeleteVersion(ctx, "c", blobs.Version{}),
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// torn are tables whose first answer for one orchestration lacks its first rows, as if it had changed between two
// pages; meanwhile is called before the answer.
type torn struct {
	tables.Store
	partition string
	times     int
	meanwhile func()
}

func (s *torn) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	page, err := s.Store.Query(ctx, table, q)
	round := slices.IndexFunc(page.Entities, func(e tables.Entity) bool { return strings.HasPrefix(e.Row, "r-") })
	if q.Partition == s.partition && s.times > 0 && round >= 0 {
		s.times--
		page.Entities = slices.Delete(page.Entities, round, round+1)
		s.meanwhile()
	}
	return page, err
}

// A run that continues or ends during the read is no finding; an unreadable one that does not change is a finding.
func TestReplayOfWhatChanges(t *testing.T) {
	t.Parallel()
	const id = "engine-1"
	for name, tt := range map[string]struct {
		program   []step
		event     string // that comes meanwhile
		times     int    // the runtime itself reads inconsistent rows again
		good, bad int
	}{
		"it goes on":  {[]step{{'e', 1}, {'e', 2}}, "e1", 3, 1, 0},
		"it ends":     {[]step{{'e', 1}}, "e1", 3, 0, 0},
		"it stays so": {[]step{{'e', 1}}, "", 1000, 0, 1},
	} {
		d := deployments{tables.NewMemory(), queues.NewMemory(), blobs.NewMemory()}
		app := programsApp(map[string][]step{"engine": tt.program})
		old := d.deploy(t, app)
		old.start(t, "engine", id)
		looked := replays{now: time.Now, out: &bytes.Buffer{}, count: map[string]int{}}
		broken := &torn{Store: d.tables, partition: id, times: tt.times, meanwhile: func() {
			if tt.event != "" {
				deliver(t, old.Runtime, id, "meanwhile", tt.event)
				tt.event = ""
			}
		}}
		h, err := New(app, Config{Lookup: emulator.Lookup, Tables: broken, Queues: d.queues, Blobs: d.blobs})
		testenv.OK(t, err)
		t.Cleanup(h.Close)
		testenv.OK(t, looked.run(t.Context(), h.program.Runtime))
		if looked.good != tt.good || looked.broken != tt.bad || looked.bad != 0 {
			t.Errorf("%s: %+v", name, looked)
		}
	}
}
