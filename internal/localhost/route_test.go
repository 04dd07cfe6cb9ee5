package localhost

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func httpFunction(name, template string) *function {
	f := &function{name: name, trigger: binding{Type: httpTrigger, Name: "req", Route: &template}}
	if template == "-" {
		f.trigger.Route = nil
	}
	return f
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	var routes []route
	for name, template := range map[string]string{
		"byname": "-", "history": "history/{*path}", "list": "history", "one": "history/{engine}/{id}", "number": "history/{n:int}/{id}",
		"exact": "history/all/{id}", "optional": "opt/{a}/{b?}", "guid": "g/{id:guid}", "flag": "f/{on:bool}", "letters": "l/{x:alpha}",
	} {
		r := testenv.Must(parseRoute(httpFunction(name, template), "api"))(t)
		routes = append(routes, r)
	}
	sortRoutes(routes)
	for path, want := range map[string]struct {
		function   string
		parameters map[string]string
	}{
		"/api/byname":          {"byname", map[string]string{}},
		"/API/ByName/":         {"byname", map[string]string{}},
		"/api/history":         {"list", map[string]string{}},
		"/api/history/x":       {"history", map[string]string{"path": "x"}},
		"/api/history/x/y/z":   {"history", map[string]string{"path": "x/y/z"}},
		"/api/history/a b/%2F": {"one", map[string]string{"engine": "a b", "id": "%2F"}},
		"/api/history/7/y":     {"number", map[string]string{"n": "7", "id": "y"}},
		"/api/history/ALL/y":   {"exact", map[string]string{"id": "y"}},
		"/api/opt/1":           {"optional", map[string]string{"a": "1"}},
		"/api/opt/1/2":         {"optional", map[string]string{"a": "1", "b": "2"}},
		"/api/opt":             {"", nil},
		"/api/opt/1/2/3":       {"", nil},
		"/api/g/0c0d9d2e-64d3-4b4a-9f0f-000000000000": {"guid", map[string]string{"id": "0c0d9d2e-64d3-4b4a-9f0f-000000000000"}},
		"/api/g/x":      {"", nil},
		"/api/f/TRUE":   {"flag", map[string]string{"on": "TRUE"}},
		"/api/f/1":      {"", nil},
		"/api/l/abc":    {"letters", map[string]string{"x": "abc"}},
		"/api/l/a1":     {"", nil},
		"/api":          {"", nil},
		"/history":      {"", nil},
		"/api//history": {"", nil},
		"/":             {"", nil},
	} {
		got := ""
		var parameters map[string]string
		for _, r := range routes {
			if p, ok := r.match(path); ok {
				got, parameters = r.function.name, p
				break
			}
		}
		if got != want.function {
			t.Errorf("%s leads to %q, want %q", path, got, want.function)
		} else if diff := cmp.Diff(want.parameters, parameters); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestRouteOfTheRoot(t *testing.T) {
	t.Parallel()
	r := testenv.Must(parseRoute(httpFunction("all", "{*any}"), ""))(t)
	for path, want := range map[string]map[string]string{"/": {}, "/a/b": {"any": "a/b"}} {
		got, ok := r.match(path)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: %v %s", path, ok, diff)
		}
	}
}

func TestRouteErrors(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"{*a}/b": "last part", "{a?}/b": "last part", "x{a}": "not supported", "{a}{b}": "not supported", "{a:regex}": "constraint",
		"{*a:int}": "no constraint", "{a=b}": "not supported",
	} {
		if _, err := parseRoute(httpFunction("f", template), "api"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", template, err, want)
		}
	}
	for _, template := range []string{"admin/x", "/Administration", "runtime/webhooks/x", "Runtimes"} {
		for _, prefix := range []string{"", "api"} {
			if _, err := parseRoute(httpFunction("f", template), prefix); err == nil {
				t.Errorf("the route %s is accepted below %q", template, prefix)
			}
		}
	}
	if r, err := parseRoute(httpFunction("f", "{runtime}/webhooks/{*path}"), "api"); err != nil {
		t.Error(err)
	} else if _, ok := r.match("/api/runtime/webhooks/x/y"); !ok {
		t.Error("a parameter does not stand for the word")
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	f := httpFunction("f", "f")
	if !f.allows("DELETE") {
		t.Error("a function without methods takes all of them")
	}
	f.trigger.Methods = []string{"get", "Post"}
	for method, want := range map[string]bool{"GET": true, "POST": true, "HEAD": false, "PUT": false} {
		if f.allows(method) != want {
			t.Errorf("%s: %v", method, !want)
		}
	}
}

// FuzzMatch checks that no path breaks the matching, and that a catch-all matches everything under it except an empty
// first part.
func FuzzMatch(f *testing.F) {
	f.Add("/api/history/%2F/%zz//")
	f.Add("//")
	catch, err := parseRoute(httpFunction("all", "{*any}"), "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string) {
		rest := strings.TrimPrefix(path, "/")
		empty := strings.HasPrefix(rest, "/") && rest != "/"
		if _, ok := catch.match(path); ok == empty {
			t.Errorf("%q: %v", path, ok)
		}
	})
}
