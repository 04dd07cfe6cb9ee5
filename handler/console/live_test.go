package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// asksWith is a request of a page that looks for news.
func asksWith(tag, age string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("If-None-Match", tag)
		r.Header.Set("Cache-Control", age)
	}
}

// A page that looks again hears that it is as it was, as long as what it is about is; what it has beside that is not asked for.
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

// What one browser was told a moment ago is told to others that ask for the same, without asking the API, but for who they are: until the time
// has passed that they allow, at this address, for this page, and to those who may see it.
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
		{"of another tenant", lettersPath, tag, "max-age=10", 0, map[string]any{"kind": "person", "id": "t/p", "scope": "red", "permissions": access.Permissions()}, 304, 1}, // as the API answers
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

// Looks do not pile up, whatever browsers send.
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

// Pages of one thing, pages that failed and forms do not look again.
func TestOthersStay(t *testing.T) {
	t.Parallel()
	c := newConsole(t, typical().with(answers{"/api/dlq": refusal{400, "InvalidParameter", "Use a time such as 2026-11-21."}}), access.Control{EasyAuth: true})
	for _, target := range []string{letterM1, letterM1 + "/retry", Root + "/nothing", tasksPath, lettersPath + "?fromDate=soon"} {
		if rec := get(t, c, target); rec.Header().Get("ETag") != "" || strings.Contains(rec.Body.String(), "data-tag") {
			t.Errorf("%s has a tag", target)
		}
	}
}

// Each section has a letter of its own, for the key behind g.
func TestSectionsHaveLetters(t *testing.T) {
	t.Parallel()
	letters := map[string]string{}
	for _, s := range (view{}).Sections() {
		if s.Letter() == "" || letters[s.Letter()] != "" {
			t.Errorf("%s has the letter %q, as %q has", s.Name, s.Letter(), letters[s.Letter()])
		}
		letters[s.Letter()] = s.Name
	}
	for letter, name := range map[string]string{"h": "Home", "d": "Dead letters", "o": "Orchestrations", "t": "Tasks"} {
		if letters[letter] != name {
			t.Errorf("g %s leads to %q, want %q", letter, letters[letter], name)
		}
	}
}

// All modules are named in the page, so that a browser loads them at once, and each names others by paths that exist.
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
