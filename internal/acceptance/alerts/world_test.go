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

// scenario causes an alert and clears it.
type scenario struct {
	// name distinguishes scenarios of one alert; "" for the main one.
	name string
	// alert has to fire; "" for a scenario in which only the alerts in also may fire.
	alert string
	// also are alerts that rightly fire too.
	also []string
	// settings are settings of the app besides the usual ones.
	settings map[string]string
	// every is the interval of scrapes and evaluations, a minute unless set.
	every time.Duration
	// run runs the three phases: well, broken and mended.
	run func(w *world)
	// process replaces run, outside of virtual time.
	process func(t *testing.T, r *recording)
}

// world is an app, its environment, and Prometheus, which scrapes it.
type world struct {
	*recording
	t    *testing.T
	host *handlertest.Host
	app  *app
	// storage is the view of the app's process on its stores.
	storage  *storage
	network  *handlertest.Network
	receiver *receiver
	settings map[string]string
	timers   map[string]*timer
	// instance is the scrape target name of the app's process.
	instance string
	// meanwhile runs before each scrape; may be nil.
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

// schedule collects the timers of the app.
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

// restart restarts the app's process.
func (w *world) restart() { w.host.Restart(w.settings, w.configure) }

// replace replaces the app's process by one on another machine.
func (w *world) replace(instance string) {
	w.leave(w.instance)
	w.instance = instance
	w.restart()
}

// configure configures the scraped process.
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

// pass lets time pass and ends a phase. Meanwhile the host calls due functions and Prometheus scrapes.
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
				w.host.Tick(name, timer.next) // failures show in the metrics
			}
			timer.next = timer.schedule.Next(now)
		}
	}
}

// timer disables or enables a timer function of the host.
func (w *world) timer(name string, disabled bool) {
	w.t.Helper()
	if w.timers[name] == nil {
		w.t.Fatalf("there is no timer %s", name)
	}
	w.timers[name].disabled = disabled
}

// deaf stops the host from calling any queue or timer function, or lets it resume.
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

// do sends a request to the API, which has to accept it.
func (w *world) do(method, path, body string) string {
	w.t.Helper()
	status, answer := w.host.Do(method, path, body)
	if status >= http.StatusBadRequest {
		w.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

// list requests a list from the API, and returns one member of each item.
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

// resolve resolves all dead letters of an engine, as an operator does.
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

// retry retries all dead letters of an engine, as an operator does.
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

// storage is the access to the stores, which may be broken.
type storage struct {
	mu     sync.Mutex
	refuse func(faults.Call) error
	lose   func(faults.Call) bool
	// ahead is the lead of the stores' clock.
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

// broken sets the error of calls; nil repairs them.
func (s *storage) broken(refuse func(faults.Call) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// losing selects calls that are answered but not carried out; nil repairs them.
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
