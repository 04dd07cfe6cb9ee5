package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/ncrontab"
	"github.com/vibedata/roundhouse/tables"
)

// scenario is what leads to an alert, and away from it.
type scenario struct {
	// name tells it from other scenarios of the alert; "" for the one that shows the alert.
	name string
	// alert is what has to fire; "" for a scenario in which nothing but also may.
	alert string
	// also are alerts that rightly fire beside it.
	also []string
	// settings are those of the app beside the usual ones.
	settings map[string]string
	// every is how far scrapes and evaluations are apart, a minute unless it is set.
	every time.Duration
	// run leads through the three phases: well, broken and mended.
	run func(w *world)
	// process runs it instead, outside of virtual time.
	process func(t *testing.T, r *recording)
}

// world is an app, who is around it, and Prometheus, which scrapes it.
type world struct {
	*recording
	t    *testing.T
	host *handlertest.Host
	app  *app
	// storage is what the app's process sees of its stores.
	storage  *storage
	network  *handlertest.Network
	receiver *receiver
	settings map[string]string
	timers   map[string]*timer
	// instance is what the app's process is scraped as.
	instance string
	// meanwhile happens before each scrape; nil for nothing.
	meanwhile func()
}

// timer is a timer function.
type timer struct {
	schedule ncrontab.Expression
	next     time.Time
	disabled bool
}

// newWorld starts an app.
func newWorld(t *testing.T, rules ruled, s scenario) *world {
	t.Helper()
	w := &world{t: t, recording: record(t, rules.metrics, s.every), app: &app{}, storage: &storage{}, network: handlertest.NewNetwork(t), receiver: &receiver{},
		settings: map[string]string{"ROUNDHOUSE_OUTBOX": outboxSetting}, instance: "a"}
	maps.Copy(w.settings, s.settings)
	w.network.Serve(receiverAddress, w.receiver)
	w.host = handlertest.New(t, handler.App{Engines: w.app.engines}, w.settings)
	w.restart()
	w.schedule()
	return w
}

// schedule takes the timers of the app.
func (w *world) schedule() {
	w.t.Helper()
	w.timers = map[string]*timer{}
	for name, f := range w.host.Manifest().Functions {
		text := f.Bindings[0].Schedule
		if text == "" {
			continue
		}
		schedule, err := ncrontab.Parse(text)
		if err != nil {
			w.t.Fatal(err)
		}
		w.timers[name] = &timer{schedule: schedule, next: schedule.Next(time.Now())}
	}
}

// restart starts the app's process anew.
func (w *world) restart() { w.host.Restart(w.settings, w.configure) }

// replace puts a process on another machine in the place of the app's.
func (w *world) replace(instance string) {
	w.leave(w.instance)
	w.instance = instance
	w.restart()
}

// configure is the configuration of the process that is scraped.
func (w *world) configure(c *handler.Config) {
	c.Dial = w.network.Dial
	c.Tables, c.Queues, c.Blobs = faults.Tables(w.host.Tables, w.storage.intercept), faults.Queues(w.host.Queues, w.storage.intercept), faults.Blobs(w.host.Blobs, w.storage.intercept)
}

// well passes the first phase.
func (w *world) well(d time.Duration) { w.pass(d) }

// broken passes the second phase.
func (w *world) broken(d time.Duration) { w.pass(d) }

// mended passes the third phase.
func (w *world) mended(d time.Duration) { w.pass(d) }

// pass lets time pass, in which the host calls what is due and Prometheus scrapes, and ends a phase.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.spend(d)
	w.end()
}

// spend lets time pass as pass does, within a phase.
func (w *world) spend(d time.Duration) {
	w.t.Helper()
	for until := time.Now().Add(d); time.Now().Before(until); {
		next := w.began.Add(time.Since(w.began).Truncate(w.every) + w.every)
		time.Sleep(time.Until(next))
		w.tick()
		if w.meanwhile != nil {
			w.meanwhile()
		}
		w.host.Deliver()
		w.scrapeSelf()
	}
}

// tick fires the timers that are due, each once.
func (w *world) tick() {
	w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(w.timers)) {
		timer := w.timers[name]
		if now := time.Now(); !timer.next.After(now) {
			if !timer.disabled {
				w.host.Tick(name, timer.next) // what fails says so in the metrics
			}
			timer.next = timer.schedule.Next(now)
		}
	}
}

// timer has the host leave a timer function alone, or call it again.
func (w *world) timer(name string, disabled bool) {
	w.t.Helper()
	if w.timers[name] == nil {
		w.t.Fatalf("there is no timer %s", name)
	}
	w.timers[name].disabled = disabled
}

// deaf has the host call no queue or timer function, or all of them again.
func (w *world) deaf(deaf bool) {
	w.t.Helper()
	for name, f := range w.host.Manifest().Functions {
		if f.Bindings[0].QueueName != "" {
			w.host.Disable(name, deaf)
		}
	}
	for _, timer := range w.timers {
		timer.disabled = deaf
	}
}

// scrapeSelf scrapes the app.
func (w *world) scrapeSelf() {
	w.t.Helper()
	status, page := w.host.Do(http.MethodGet, "/api/metrics", "")
	if status != http.StatusOK {
		w.t.Fatalf("the metrics: %d %s", status, page)
	}
	w.scrape(w.instance, []byte(page))
}

// do asks the API, which has to agree.
func (w *world) do(method, path, body string) string {
	w.t.Helper()
	status, answer := w.host.Do(method, path, body)
	if status >= http.StatusBadRequest {
		w.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

// list asks the API for a list, and gives one member of each item.
func (w *world) list(path, member string) (all []string) {
	w.t.Helper()
	var answer struct {
		Data struct{ Items []map[string]any }
	}
	if err := json.Unmarshal([]byte(w.do(http.MethodGet, path, "")), &answer); err != nil {
		w.t.Fatal(err)
	}
	for _, item := range answer.Data.Items {
		all = append(all, fmt.Sprint(item[member]))
	}
	return all
}

// resolve resolves all dead letters of an engine, as a person does.
func (w *world) resolve(engine string) {
	w.t.Helper()
	letters := w.list("/api/dlq?status=Pending&engine="+engine, "rowKey")
	if len(letters) == 0 {
		w.t.Errorf("%s has no pending dead letter", engine)
	}
	for _, row := range letters {
		w.do(http.MethodPatch, "/api/dlq/"+engine+"/"+row, `{"status":"Resolved","resolutionNotes":"seen"}`)
	}
}

// retry retries all dead letters of an engine, as a person does.
func (w *world) retry(engine string) {
	w.t.Helper()
	letters := w.list("/api/dlq?status=Pending&engine="+engine, "rowKey")
	if len(letters) == 0 {
		w.t.Errorf("%s has no pending dead letter", engine)
	}
	for _, row := range letters {
		w.do(http.MethodPost, "/api/dlq/"+engine+"/"+row+"/retry", "")
	}
}

// storage is the way to the stores, which may be broken.
type storage struct {
	mu     sync.Mutex
	refuse func(faults.Call) error
	lose   func(faults.Call) bool
	// ahead is by how much the clock of the stores is ahead.
	ahead time.Duration
}

// intercept is a faults.Interceptor.
func (s *storage) intercept(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	s.mu.Lock()
	refuse, lose, ahead := s.refuse, s.lose, s.ahead
	s.mu.Unlock()
	if lose != nil && lose(c) {
		return nil
	}
	if refuse != nil {
		if err := refuse(c); err != nil {
			return err
		}
	}
	err := next(ctx)
	if ahead != 0 {
		tables.RecordResponse(ctx, time.Now().Add(ahead), "")
	}
	return err
}

// broken says what becomes of calls; nil mends it.
func (s *storage) broken(refuse func(faults.Call) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// losing has calls answered that are not carried out; nil mends it.
func (s *storage) losing(lose func(faults.Call) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = lose
}

// off sets the clock of the stores.
func (s *storage) off(ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = ahead
}
