package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/access"
)

// quietApp is an app with empty storage.
func quietApp() answers {
	return nothing().with(answers{"/api/tasks": list(), "/api/credentials": list(), "/api/operations": list(), "/api/history": list(), "/api/pollers": list(), "/api/health/full": document{200, `{"status": "pass", "checks": {"schedules:delay": [{"status": "pass", "observedValue": 0}]}}`},
		"/api/engines": `{"engines": [{"name": "alert-processor"}, {"name": "hmac", "queue": "hmac-rotation-queue"}], "names": ["hmac", "outbox"]}`})
}

// morePollers is a list with another page.
func morePollers(of map[string]any) map[string]any {
	of["continuationToken"] = "next page"
	return of
}

// busyApp has something in each part of the home page.
func busyApp() answers {
	task := map[string]any{"orchestrationId": "update-7", "taskId": "1-1", "name": "approve update", "engine": "update", "status": "Assigned", "assigneeName": "Bo", "createdAtUtc": "2026-11-26T10:00:00Z", "dueAtUtc": "2026-11-26T12:00:00Z"}
	var results []any
	for n := range 30 {
		results = append(results, map[string]any{"createdAtUtc": goldenNow().Add(-time.Duration(n*n) * time.Minute)})
	}
	return typical().with(answers{"/api/pollers": morePollers(list(map[string]any{"name": "orders", "condition": "failing", "problem": "deadlock detected\nat row 7"},
		map[string]any{"name": "bills", "condition": "idle", "process": map[string]any{"heldBack": "a transaction is open"}}, map[string]any{"name": "well", "condition": "running", "seenAtUtc": goldenNow()})),
		"/api/tasks": list(task), "/api/operations": list(operationData(nil), operationData(map[string]any{"status": "Paused"})), "/api/history": list(results...),
		"/api/credentials": list(map[string]any{"engine": "tls", "name": "tls-api", "expiresAtUtc": "2026-11-30T00:00:00Z"}, map[string]any{"engine": "spn", "name": "spn-old", "expiresAtUtc": "2026-11-20T00:00:00Z", "expired": true}),
		"/api/health/full": document{503, `{"status": "fail", "releaseId": "1.2.3", "checks": {"schedules:delay": [{"status": "warn", "observedValue": 500, "output": "1 is overdue: hmac payments."}],
			"tables:responseTime": [{"status": "pass"}], "vault:responseTime": [{"status": "fail", "output": "It did not answer in time."}]}}`}})
}

func hostileApp() answers {
	task := map[string]any{"orchestrationId": evil, "taskId": turning, "name": evil, "engine": evil, "status": evil, "assigneeName": turning, "dueAtUtc": "0001-01-02T00:00:00Z"}
	text, _ := json.Marshal(evil + turning)
	return hostile().with(answers{"/api/pollers": list(map[string]any{"name": evil, "condition": evil, "problem": evil + turning, "process": map[string]any{"heldBack": turning}}), "/api/tasks": list(task), "/api/operations": list(hostileOperation()), "/api/history": list(map[string]any{"createdAtUtc": "9999-01-01T00:00:00Z"}, map[string]any{"createdAtUtc": "0001-01-01T00:00:00Z"}),
		"/api/credentials": list(map[string]any{"engine": evil, "name": turning, "expiresAtUtc": "9999-01-01T00:00:00Z"}),
		"/api/health/full": document{200, fmt.Sprintf(`{"status": %s, "releaseId": %[1]s, "output": %[1]s, "checks": {%[1]s: [{"status": %[1]s, "output": %[1]s}], "schedules:delay": [{"status": "pass", "observedValue": %[1]s}, {"observedValue": 1e300}]}}`, text)}})
}

// homePages are the home page with data in each part, and with the reasons for empty parts.
func homePages() map[string]shown {
	failing := answers{"/api/me": operator()}
	for _, path := range []string{"/api/dlq", "/api/dlq/groups", "/api/orchestrations", "/api/workflow/outbox", "/api/tasks", "/api/credentials", "/api/operations", "/api/history", "/api/pollers", "/api/health/full"} {
		failing[path] = refusal{503, "ServiceUnavailable", "Storage did not answer in time."}
	}
	home := func(a answers) shown { return at(a, Root, http.StatusOK) }
	return map[string]shown{
		"home_empty":       home(quietApp()),
		"home_typical":     home(busyApp()),
		"home_hostile":     home(hostileApp()),
		"home_unanswered":  home(failing),
		"home_participant": home(busyApp().with(answers{"/api/me": someone("pat@example.com", access.Participant.Permissions()...)})),
		"home_quiet":       home(quietApp().with(answers{"/api/history": list(map[string]any{"createdAtUtc": "2026-11-26T13:59:00Z"})})),
		"home_unprepared":  home(quietApp().with(answers{"/api/health/full": document{503, `{"status": "fail", "output": "Storage is not prepared yet."}`}})),
	}
}

// Data that the user may not see is not requested, and requests are short.
func TestHomeAsks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]url.Values{}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path+"?"+r.URL.Query().Get("status")+r.URL.Query().Get("assignee")] = r.URL.Query()
		quietApp().with(answers{"/api/me": someone("pat@example.com", access.Participant.Permissions()...)}).ServeHTTP(w, r)
	})
	get(t, newConsole(t, api, access.Control{EasyAuth: true}), Root)
	want := map[string]url.Values{"/api/me?": {}, "/api/tasks?t/o": {"assignee": {"t/o"}, "limit": {"5"}}, "/api/tasks?": {"dueBefore": {"2026-11-26T14:00:00Z"}, "limit": {"5"}}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("a participant's page asks (-want +got):\n%s", diff)
	}
}

// A day is counted by hour. If more exists than is read, earlier hours are unknown, and the hour at the edge has a
// minimum; only a few pages are read.
func TestDay(t *testing.T) {
	t.Parallel()
	now := goldenNow().Add(30 * time.Minute)
	for name, test := range map[string]struct {
		every            time.Duration
		n                int
		total, pages     int
		atLeast          bool
		hours            string // from the latest on
		edge, unknownAll int
	}{
		"none":            {time.Minute, 0, 0, 1, false, "0 0 0", -1, 0},
		"few":             {20 * time.Minute, 5, 5, 1, false, "2 3 0", -1, 0},
		"two pages":       {time.Minute, 150, 150, 2, false, "31 60 59", -1, 0},
		"more than pages": {time.Minute, 1000, 300, 3, true, "31 60 60", 5, 18},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pages := 0
			api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from, _ := strconv.Atoi(r.URL.Query().Get("continuationToken"))
				pages++
				data := map[string]any{}
				var items []any
				for n := from; n < min(from+dayPage, test.n); n++ {
					items = append(items, map[string]any{"createdAtUtc": now.Add(-time.Duration(n) * test.every)})
				}
				if data["items"] = items; from+dayPage < test.n {
					data["continuationToken"] = fmt.Sprint(from + dayPage)
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
			})
			c := newConsole(t, api, access.Control{})
			c.config.Now = func() time.Time { return now }
			s, err := resultsOfDay(t.Context(), &visit{console: c, api: c.client(&http.Request{})})
			if err != nil || s.Total != test.total || pages != test.pages || s.AtLeast != test.atLeast || len(s.Hours) != dayHours {
				t.Errorf("%d in %d pages, at least: %v, %v", s.Total, pages, s.AtLeast, err)
			}
			var hours []string
			edge, unknown := -1, 0
			for n := range s.Hours {
				h := s.Hours[dayHours-1-n]
				if n < 3 {
					hours = append(hours, fmt.Sprint(h.Count))
				}
				if h.AtLeast {
					edge = n
				}
				if h.Unknown {
					unknown++
				}
			}
			if got := strings.Join(hours, " "); got != test.hours || edge != test.edge || unknown != test.unknownAll || s.Unknown() != unknown*sparkStep {
				t.Errorf("hours %s, the edge at %d, %d are not known", got, edge, unknown)
			}
		})
	}
}

// A count is cached for some minutes, for users who see the same, and for no others.
func TestDaysAreKept(t *testing.T) {
	t.Parallel()
	now, counted := goldenNow(), 0
	var d days
	look := func(key string, err error) int {
		t.Helper()
		s, got := d.get(key, now, func() (daySeries, error) {
			counted++
			return daySeries{Total: counted, CountedAt: now}, err
		})
		if !errors.Is(got, err) {
			t.Errorf("%v", got)
		}
		return s.Total
	}
	lost := errors.New("no line")
	steps := []int{look("a", lost), look("a", nil), look("a", nil), look("b", nil)}
	now = now.Add(dayAge)
	if steps = append(steps, look("a", nil)); !slices.Equal(steps, []int{1, 2, 2, 3, 4}) {
		t.Errorf("counted %v", steps)
	}
	for n := range 2 * maxDays {
		look(fmt.Sprint(n), nil)
	}
	if len(d.kept) > maxDays {
		t.Errorf("%d are kept", len(d.kept))
	}
}

// The home page changes when health or a poller does, and not with their numbers and times only.
func TestHomeNews(t *testing.T) {
	t.Parallel()
	health := func(status, vault, delay string) document {
		return document{200, `{"status": "` + status + `", "releaseId": "1", "checks": {"vault:responseTime": [{"status": "` + vault + `", "observedValue": ` + delay + `, "time": "` + delay + `"}], "schedules:delay": [{"status": "pass", "observedValue": ` + delay + `}]}}`}
	}
	pollers := func(condition, place, heldBack string) map[string]any {
		return list(map[string]any{"name": "orders", "condition": condition, "place": place, "seenAtUtc": place, "process": map[string]any{"heldBack": heldBack}})
	}
	before := quietApp().with(answers{"/api/health/full": health("pass", "pass", "3"), "/api/pollers": pollers("running", "2026-11-26T13:00:00Z", "")})
	for name, test := range map[string]struct {
		change answers
		news   bool
	}{
		"nothing":                     {answers{}, false},
		"a number of a check":         {answers{"/api/health/full": health("pass", "pass", "4")}, false},
		"a check":                     {answers{"/api/health/full": health("pass", "fail", "3")}, true},
		"the whole":                   {answers{"/api/health/full": health("fail", "pass", "3")}, true},
		"a schedule is missed":        {answers{"/api/health/full": health("pass", "pass", "4000")}, true},
		"no answer of health":         {answers{"/api/health/full": refusal{500, "InternalError", "oh"}}, true},
		"the place of a poller":       {answers{"/api/pollers": pollers("idle", "2026-11-26T13:30:00Z", "")}, false},
		"a poller fails":              {answers{"/api/pollers": pollers("failing", "2026-11-26T13:00:00Z", "")}, true},
		"a poller is held back":       {answers{"/api/pollers": pollers("running", "2026-11-26T13:00:00Z", "a transaction is open")}, true},
		"no answer of pollers":        {answers{"/api/pollers": refusal{503, "ServiceUnavailable", "oh"}}, true},
		"there are dead letters, too": {answers{"/api/dlq/groups": refusal{503, "ServiceUnavailable", "oh"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &calls{answers: before}
			c := newConsole(t, a, access.Control{EasyAuth: true})
			tag := get(t, c, Root).Header().Get("ETag")
			a.answers = before.with(test.change)
			rec := get(t, c, Root, asksWith(tag, "no-cache"))
			if news := rec.Code == http.StatusOK; !strings.HasPrefix(tag, `W/"`) || news != test.news {
				t.Errorf("%d, want news: %v", rec.Code, test.news)
			}
		})
	}
}

// asksWith is a request of a page that polls for news.
func asksWith(tag, age string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("If-None-Match", tag)
		r.Header.Set("Cache-Control", age)
	}
}

// A poll is answered as unchanged while the page's subject is; other data of the page is not requested.
func TestLooksAgain(t *testing.T) {
	t.Parallel()
	for path, asked := range map[string][]string{
		Root: {"/api/credentials", "/api/dlq/groups", "/api/health/full", "/api/operations", "/api/orchestrations", "/api/orchestrations", "/api/pollers", "/api/tasks", "/api/tasks",
			"/api/workflow/outbox"},
		operationsPath:     {"/api/operations"},
		lettersPath:        {"/api/dlq"},
		causesPath:         {"/api/dlq/groups"},
		orchestrationsPath: {"/api/orchestrations"},
		tasksPath:          {"/api/tasks"},
		outboxPath:         {"/api/workflow/outbox"},
		schedulesPath:      {"/api/schedules"},
		registryPath:       {"/api/registry"},
		auditPath:          {"/api/audit"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			a := &calls{answers: typical().with(answers{"/api/tasks": list(), "/api/pollers": list(), "/api/schedules": list(), "/api/registry": list(), "/api/audit": list(), "/api/operations": list(), "/api/workflow/outbox/metrics": map[string]any{}})}
			c := newConsole(t, a, access.Control{EasyAuth: true})
			first := get(t, c, path)
			tag := first.Header().Get("ETag")
			if first.Code != http.StatusOK || !strings.HasPrefix(tag, `W/"`) {
				t.Fatalf("%d with the tag %s", first.Code, tag)
			}
			a.got = nil
			again := get(t, c, path, asksWith(tag, "no-cache"))
			if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("again: %d with %d bytes", again.Code, again.Body.Len())
			}
			var got []string
			for _, r := range a.got {
				got = append(got, r.URL.Path)
			}
			if slices.Sort(got); !slices.Equal(got, asked) {
				t.Errorf("it asked for %v", got)
			}
			a.answers = a.with(answers{asked[0]: refusal{503, "ServiceUnavailable", "Storage did not answer in time."}})
			if later := get(t, c, path, asksWith(tag, "no-cache")); later.Code == http.StatusNotModified || later.Header().Get("ETag") == tag {
				t.Errorf("changed: %d with the tag %s", later.Code, later.Header().Get("ETag"))
			}
		})
	}
}

// The result of a recent poll serves other users with the same request, without calling the API except for their
// identity: within the time that they allow, at this address, for this page, and with the permission to see it.
func TestLooksAreShared(t *testing.T) {
	t.Parallel()
	now := goldenNow()
	a := &calls{answers: typical()}
	c, err := New(Config{API: restoring(a), Control: access.Control{EasyAuth: true}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	tag := get(t, c, lettersPath).Header().Get("ETag")
	for _, test := range []struct {
		name, target, tag, age string
		later                  time.Duration
		me                     any
		status, asked          int
	}{
		{"at once", lettersPath, tag, "max-age=10", 0, operator(), 304, 0},
		{"as long as allowed", lettersPath, tag, "max-age=10", 9 * time.Second, operator(), 304, 0},
		{"longer", lettersPath, tag, "max-age=10", time.Second, operator(), 304, 1},
		{"nothing allowed", lettersPath, tag, "no-cache", 0, operator(), 304, 1},
		{"nonsense", lettersPath, tag, "max-age=-7, max-age=x", 0, operator(), 304, 1},
		{"very old", lettersPath, tag, "max-age=99999999999999", maxShared, operator(), 304, 1},
		{"another page", lettersPath, `W/"0"`, "max-age=10", 0, operator(), 200, 1},
		{"another address", lettersPath + "?status=any", tag, "max-age=10", 0, operator(), 200, 1},
		{"of another tenant", lettersPath, tag, "max-age=10", 0, map[string]any{"kind": "person", "id": "t/p", "scope": "red", "permissions": access.Permissions()}, 304, 1}, // like the API's answer
		{"without the permission", lettersPath, tag, "max-age=10", 0, someone("pat@example.com", access.Participant.Permissions()...), 304, 1},                               // the API decides
	} {
		now = now.Add(test.later)
		a.got, a.answers = nil, a.with(answers{"/api/me": test.me})
		rec := get(t, c, test.target, asksWith(test.tag, test.age))
		if rec.Code != test.status || len(a.got) != test.asked {
			t.Errorf("%s: %d, and the API was asked %d times", test.name, rec.Code, len(a.got))
		}
	}
}

// Cached polls are bounded, for any requests of browsers.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	var l looks
	now := goldenNow()
	for n := range 2 * maxLooks {
		l.note("/", fmt.Sprint(n), now)
	}
	if len(l.at) > maxLooks || l.holds("/", fmt.Sprint(2*maxLooks-1), time.Minute, now) {
		t.Errorf("%d looks are kept", len(l.at))
	}
	if l.note("/", "later", now.Add(2*maxShared)); len(l.at) != 1 {
		t.Errorf("%d looks are kept that hold no more", len(l.at)-1)
	}
}

// Pages of one object, error pages and forms do not poll.
func TestOthersStay(t *testing.T) {
	t.Parallel()
	c := newConsole(t, typical().with(answers{"/api/dlq": refusal{400, "InvalidParameter", "Use a time such as 2026-11-21."}}), access.Control{EasyAuth: true})
	for _, target := range []string{letterM1, letterM1 + "/retry", Root + "/nothing", tasksPath, lettersPath + "?fromDate=soon"} {
		if rec := get(t, c, target); rec.Header().Get("ETag") != "" || strings.Contains(rec.Body.String(), "data-tag") {
			t.Errorf("%s has a tag", target)
		}
	}
}

// All modules are named in the page, so that a browser loads them immediately, and each names others by existing paths.
func TestModules(t *testing.T) {
	t.Parallel()
	c := newConsole(t, typical(), access.Control{EasyAuth: true})
	body := get(t, c, Root).Body.String()
	count := 0
	for name, path := range c.assets.paths {
		if strings.HasPrefix(name, "modules/") {
			count++
			if !strings.Contains(body, `"`+path+`"`) {
				t.Errorf("%s is not in the page", path)
			}
			if rec := get(t, c, path); rec.Code != http.StatusOK || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/javascript") || !strings.Contains(rec.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %d %v", path, rec.Code, rec.Header())
			}
		}
	}
	if count == 0 {
		t.Error("there are no modules")
	}
}
