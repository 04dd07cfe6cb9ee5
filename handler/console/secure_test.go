package console

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/access"
)

var copied = regexp.MustCompile(`data-copy="the (id|command|curl command)">([^<]*)<`)

// copies returns the texts that a page offers for copying.
func copies(page string) map[string]string {
	out := map[string]string{}
	for _, m := range copied.FindAllStringSubmatch(page, -1) {
		out[m[1]] = html.UnescapeString(m[2])
	}
	return out
}

// A text that a page offers for copying requests the page's data, at the browser's host, and never with a key.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	const key = `curl -H "x-functions-key: $ROUNDHOUSE_KEY" `
	from := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, test := range map[string]struct {
		control access.Control
		target  string
		change  func(*http.Request)
		want    map[string]string
	}{
		"a list": {access.Control{EasyAuth: true}, lettersPath + "?engine=hmac&instanceId=it%27s&fromDate=2026-11-26T13%3A00%3A00%2B01%3A00", from("X-Forwarded-Host", "app.example"), map[string]string{
			"command":      `roundhouse dlq list --engine=hmac --status=Pending '--instance=it'\''s' --from=2026-11-26T13:00:00+01:00`,
			"curl command": key + `'https://app.example/api/machine/dlq?engine=hmac&fromDate=2026-11-26T13%3A00%3A00%2B01%3A00&instanceId=it%27s&status=Pending'`}},
		"one thing": {access.Control{EasyAuth: true}, letterM1, from("X-Forwarded-Host", "app.example"), map[string]string{
			"id": "hmac/m1-20261126T120000.000000Z", "command": "roundhouse dlq show hmac m1-20261126T120000.000000Z", "curl command": key + "https://app.example/api/machine/dlq/hmac/m1-20261126T120000.000000Z"}},
		"on a developer's machine": {access.Control{Development: true, LocalKey: key}, orchestrationsPath, from("x-functions-key", key), map[string]string{
			"command": "roundhouse orchestration list", "curl command": key + "http://localhost/api/machine/orchestrations"}},
		"what cannot be seen": {access.Control{EasyAuth: true}, lettersPath + "?instanceId=%E2%80%AEabc", from("X-Forwarded-Host", "app.example"), map[string]string{
			"curl command": key + `'https://app.example/api/machine/dlq?instanceId=%E2%80%AEabc&status=Pending'`}},
		"a host that is none": {access.Control{EasyAuth: true}, orchestrationsPath, from("X-Forwarded-Host", "a$(id).example"), map[string]string{"command": "roundhouse orchestration list"}},
		"a form":              {access.Control{EasyAuth: true}, letterM1 + "/retry", from("X-Forwarded-Host", "app.example"), map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := get(t, newConsole(t, typical(), test.control), test.target, test.change)
			got := copies(rec.Body.String())
			for what, text := range test.want {
				if got[what] != text {
					t.Errorf("%s: %s, want %s", what, got[what], text)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("there are %v", got)
			}
		})
	}
}

// An id with invisible characters cannot be copied, nor can a command with it.
func TestElsewhereOfHiddenIDs(t *testing.T) {
	t.Parallel()
	l := letterData(map[string]any{"rowKey": "a\u202eb"})
	rec := get(t, newConsole(t, typical().with(answers{"/api/dlq/hmac/a\u202eb": l}), access.Control{EasyAuth: true}), letterLink("hmac", "a\u202eb"))
	got := copies(rec.Body.String())
	if rec.Code != http.StatusOK || len(got) != 1 || !strings.Contains(got["curl command"], "/hmac/a%E2%80%AEb") {
		t.Errorf("%d: %q", rec.Code, got)
	}
	for _, test := range []struct {
		ids  []string
		want Text
	}{
		{[]string{"acme", "-1"}, "roundhouse outbox show -- acme -1"},
		{[]string{"a b", "c"}, "roundhouse outbox show 'a b' c"},
		{[]string{"a\nb", "c"}, ""},
	} {
		if got := showLine("outbox show", test.ids...); got != test.want {
			t.Errorf("%q: %s, want %s", test.ids, got, test.want)
		}
	}
}

var chipLink = regexp.MustCompile(`<a class="chip" href="([^"]*)"><span class="unseen">Without </span>([^:<]*): `)

// Each filter in use is a chip, and its link leads to the list without that filter, and with all others.
func TestChips(t *testing.T) {
	t.Parallel()
	api := typical().with(answers{"/api/tasks": list(), "/api/registry": list(), "/api/audit": list(), "/api/operations": list(), "/api/workflow/outbox/metrics": map[string]any{},
		"/api/workflow/outbox/circuits": list(), "/api/workflow/outbox/backlog": list()})
	for name, test := range map[string]struct {
		path, query string
		want        []string
		kept        string // stays although it is not a filter
	}{
		"dead letters":           {lettersPath, "status=any&engine=hmac&instanceId=i%3C1&correlationId=c&errorSignature=s&assignee=me&fromDate=2026-11-21&toDate=2026-11-22", []string{"Status", "Engine", "Instance", "Correlation id", "Cause", "Taken by", "Failed from", "Failed until"}, ""},
		"pending dead letters":   {lettersPath, "status=Pending", nil, ""},
		"causes":                 {causesPath, "status=any&engine=hmac&errorSignature=s&assignee=me", []string{"Status", "Engine"}, ""},
		"all tasks":              {tasksPath, "view=all&status=Completed&assignee=a&role=r&engine=hmac&tenantId=t&dueBefore=2026-11-21", []string{"Status", "Who has it", "Role", "Engine", "Tenant", "Due before"}, "view=all"},
		"my tasks":               {tasksPath, "status=Completed&assignee=a&role=r", []string{"Role"}, "view=mine"},
		"events":                 {outboxPath, "status=dead&tenant=acme&eventType=e&correlationId=c&fromDate=2026-11-21&toDate=2026-11-22", []string{"Status", "Tenant", "Event type", "Correlation id", "Published from", "Published until"}, ""},
		"events with any status": {outboxPath, "status=any", nil, ""},
		"operations":             {operationsPath, "status=Open&by=ada", []string{"Status", "By"}, ""},
		"audit":                  {auditPath, "target=t&principal=p&fromDate=2026-11-21&toDate=2026-11-22", []string{"Target", "Who", "From", "Until"}, ""},
		"registry":               {registryPath, "tenantId=t&ring=r&locked=true", []string{"Tenant", "Ring", "Lock"}, ""},
		"orchestrations":         {orchestrationsPath, "status=Failed&tag=a&columns=status", []string{"Status", "Business reference"}, "columns=status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			console := newConsole(t, api, access.Control{EasyAuth: true})
			chips := func(target string) (names []string, links map[string]string) {
				links = map[string]string{}
				for _, m := range chipLink.FindAllStringSubmatch(strings.SplitN(get(t, console, target).Body.String(), `<details class="filter"`, 2)[0], -1) {
					names, links[m[2]] = append(names, m[2]), html.UnescapeString(m[1])
				}
				return names, links
			}
			names, links := chips(test.path + "?" + test.query)
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("chips (-want +got):\n%s", diff)
			}
			for name, link := range links {
				rest, _ := chips(link)
				want := slices.DeleteFunc(slices.Clone(test.want), func(other string) bool { return other == name })
				if diff := cmp.Diff(want, rest); diff != "" && len(want)+len(rest) > 0 {
					t.Errorf("without %s (-want +got):\n%s", name, diff)
				}
				at, err := url.Parse(link)
				if err != nil || at.Path != test.path || !strings.Contains(at.RawQuery, test.kept) {
					t.Errorf("without %s: %s, %v", name, link, err)
				}
			}
		})
	}
}

// sketch returns a tree in one line.
func sketch(n *treeNode) string {
	if n == nil {
		return "none"
	}
	if n.Kind == "" {
		return string(n.Name) + "=" + string(n.Value)
	}
	var all []string
	for _, c := range n.Children {
		all = append(all, sketch(c))
	}
	if n.Left > 0 {
		all = append(all, fmt.Sprintf("+%d", n.Left))
	}
	return string(n.Name) + "(" + strings.Join(all, " ") + ")"
}

// A tree has a document's values: numbers and texts unchanged, in their order, and duplicates twice.
func TestTree(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"b": 123456789012345678901234567890, "a": [1.10, "x\u202ey", null], "b": {}}`: `(b=123456789012345678901234567890 a(0=1.10 1="x\u202ey" 2=null) b())`,
		` [true] `: `(0=true)`,
		``:         "none", `7`: "none", `"{}"`: "none", `{`: "none", `{"a": 1} x`: "none",
		`{"n": "` + strings.Repeat("é", maxLeaf) + `"}`: `(n="` + strings.Repeat("é", maxLeaf/2-1) + `…)`,
	} {
		if got := sketch(treeOf([]byte(document))); got != want {
			t.Errorf("%.60s: %s, want %s", document, got, want)
		}
	}
}

// A tree is bounded, and reports its omissions.
func TestTreeIsBounded(t *testing.T) {
	t.Parallel()
	wide := treeOf([]byte(`[` + strings.TrimSuffix(strings.Repeat(`1,`, maxTreeNodes+99), ",") + `]`))
	if len(wide.Children) != maxTreeNodes-1 || wide.Left != 100 || wide.Count() != "499 elements" || wide.Open {
		t.Errorf("%d children, %d left, %s, open %v", len(wide.Children), wide.Left, wide.Count(), wide.Open)
	}
	deep := treeOf([]byte(strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)))
	levels := 0
	for n := deep; len(n.Children) > 0; n = n.Children[0] {
		levels++
	}
	if levels != maxTreeDepth {
		t.Errorf("%d levels", levels)
	}
	if one := treeOf([]byte(`{"a": [2]}`)); one.Count() != "1 member" || !one.Open || !one.Children[0].Open || one.Children[0].Count() != "1 element" {
		t.Errorf("%+v", one)
	}
}

const key = "the-key-of-the-local-host"

func local() access.Control { return access.Control{Development: true, LocalKey: key} }

// Every answer makes the browser run only the console's own script, and forbids frames and content sniffing.
func TestHeaders(t *testing.T) {
	t.Parallel()
	c := newConsole(t, typical(), local())
	style := c.assets.paths["console.css"]
	for name, test := range map[string]struct {
		method, target string
		status         int
		cache          string
	}{
		"a page":          {http.MethodGet, Root, 200, "no-store"},
		"its head":        {http.MethodHead, Root, 200, "no-store"},
		"no page":         {http.MethodGet, Root + "/nothing", 404, "no-store"},
		"a sign-in":       {http.MethodGet, Root + "?code=" + key, 303, "no-store"},
		"no sign-in":      {http.MethodGet, Root + "?code=x", 401, "no-store"},
		"a foreign form":  {http.MethodPost, letterM1 + "/retry", 403, "no-store"},
		"another method":  {http.MethodDelete, Root, 405, ""},
		"a file":          {http.MethodGet, style, 200, "public, max-age=31536000, immutable"},
		"the folder":      {http.MethodGet, Root + "/assets", 404, "no-store"},
		"no file":         {http.MethodGet, Root + "/assets/console.0000.css", 404, "no-store"},
		"an unclean path": {http.MethodGet, Root + "//dead-letters", 307, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), test.method, test.target, nil)
			r.Host = "localhost"
			rec := httptest.NewRecorder()
			c.ServeHTTP(rec, r)
			h := rec.Header()
			if rec.Code != test.status || h.Get("Cache-Control") != test.cache {
				t.Errorf("%d, %s", rec.Code, h.Get("Cache-Control"))
			}
			for _, directive := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "style-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
				if !strings.Contains(h.Get("Content-Security-Policy")+";", directive+";") {
					t.Errorf("no %s in %q", directive, h.Get("Content-Security-Policy"))
				}
			}
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin"} {
				if h.Get(name) != want {
					t.Errorf("%s: %q", name, h.Get(name))
				}
			}
			if test.method == http.MethodHead && rec.Body.Len() > 0 {
				t.Errorf("HEAD has a body of %d bytes", rec.Body.Len())
			}
		})
	}
}

// Files are sent compressed, once: a browser with a copy gets the answer that it is current.
func TestAssets(t *testing.T) {
	t.Parallel()
	c := newConsole(t, nothing(), access.Control{})
	for name, path := range c.assets.paths {
		plain := get(t, c, path)
		packed := get(t, c, path, func(r *http.Request) { r.Header.Set("Accept-Encoding", "br, gzip;q=0.8") })
		again := get(t, c, path, func(r *http.Request) { r.Header.Set("If-None-Match", plain.Header().Get("ETag")) })
		refused := get(t, c, path, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip; q=0") })
		unpack, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unpack)
		if err != nil || !bytes.Equal(text, plain.Body.Bytes()) || !bytes.Equal(text, refused.Body.Bytes()) || again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: %v, %d, %d bytes", name, err, again.Code, again.Body.Len())
		}
	}
}

// The first page with all its files is small.
func TestFirstPageIsSmall(t *testing.T) {
	t.Parallel()
	c := newConsole(t, typical(), access.Control{})
	all := 0
	for _, path := range slices.Concat([]string{Root}, slices.Collect(maps.Values(c.assets.paths))) {
		all += get(t, c, path, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }).Body.Len()
	}
	t.Logf("%d bytes", all)
	if all > 60<<10 {
		t.Errorf("%d bytes", all)
	}
}

// calls records the API requests, and the last change: its method, path, key, version, and body.
type calls struct {
	mu sync.Mutex
	answers
	got  []*http.Request
	sent string
}

// ServeHTTP implements [http.Handler].
func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/me" {
		c.mu.Lock()
		c.got = append(c.got, r)
		if r.Method != http.MethodGet {
			body, err := io.ReadAll(r.Body)
			c.sent = fmt.Sprintf("%s %s key %q of %q: %s", r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("If-Match"), bytes.TrimSpace(body))
			if err != nil {
				c.sent += err.Error()
			}
		}
		c.mu.Unlock()
	}
	c.answers.ServeHTTP(w, r)
}

// sentBy checks the API request for a form, "" for none, and returns the answer.
func (c *calls) sentBy(t *testing.T, page shown, want string) *httptest.ResponseRecorder {
	t.Helper()
	page.api = c
	rec := page.ask(t)
	if diff := cmp.Diff(want, c.sent); diff != "" || rec.Code != page.status {
		t.Errorf("%d, want %d; the API got (-want +got):\n%s", rec.Code, page.status, upper(diff))
	}
	return rec
}

// Only a page of the console makes changes, and its values reach the API as its own: with the form's key, and in the
// name of the user.
func TestForms(t *testing.T) {
	t.Parallel()
	form := url.Values{"key": {"form-1"}, "etag": {"v1"}, "notes": {"too old"}}.Encode()
	for name, test := range map[string]struct {
		header http.Header
		done   bool
	}{
		"its own page":                {http.Header{"Sec-Fetch-Site": {"same-origin"}}, true},
		"an older browser":            {http.Header{"Origin": {"https://app.example"}}, true},
		"through the host":            {http.Header{"Origin": {"https://app.example"}, "X-Forwarded-Host": {"app.example"}}, true},
		"a page of another site":      {http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}}, false},
		"a page of a sister":          {http.Header{"Sec-Fetch-Site": {"same-site"}, "Origin": {"https://evil.app.example"}}, false},
		"another origin":              {http.Header{"Origin": {"https://evil.example"}}, false},
		"another origin by the host":  {http.Header{"Origin": {"https://app.example"}, "X-Forwarded-Host": {"other.example"}}, false},
		"no origin that can be named": {http.Header{"Origin": {"null"}}, false},
		"no browser":                  {http.Header{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &calls{answers: typical().with(answers{"/api/dlq/hmac/m1-20261126T120000.000000Z/retry": map[string]any{}})}
			c := newConsole(t, a, access.Control{EasyAuth: true})
			for _, action := range []string{"retry", "expire"} {
				a.got = nil
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, letterM1+"/"+action, strings.NewReader(form))
				r.Host, r.Header = "app.example", test.header.Clone()
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set("X-Ms-Client-Principal", "somebody")
				rec := httptest.NewRecorder()
				c.ServeHTTP(rec, r)
				if !test.done {
					if rec.Code != http.StatusForbidden || len(a.got) > 0 {
						t.Errorf("%s: %d, and the API was asked %d times", action, rec.Code, len(a.got))
					}
					continue
				}
				if rec.Code != http.StatusSeeOther || !strings.HasPrefix(rec.Header().Get("Location"), letterM1+"?done=") || len(a.got) != 1 {
					t.Fatalf("%s: %d to %s, and the API was asked %d times", action, rec.Code, rec.Header().Get("Location"), len(a.got))
				}
				if h := a.got[0].Header; h.Get("Idempotency-Key") != "form-1" || h.Get("X-Ms-Client-Principal") != "somebody" || h.Get("Cookie") != "" || action == "expire" && h.Get("If-Match") != "v1" {
					t.Errorf("%s: the API got %v", action, h)
				}
			}
		})
	}
}

// The address that the local host prints signs a browser in, and no other address does.
func TestSignIn(t *testing.T) {
	t.Parallel()
	c := newConsole(t, typical(), local())
	rec := get(t, c, lettersPath+"?code="+key+"&status=any")
	cookies := rec.Result().Cookies()
	if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != lettersPath+"?status=any" || len(cookies) != 1 {
		t.Fatalf("%d to %s, %d cookies", rec.Code, rec.Header().Get("Location"), len(cookies))
	}
	if k := cookies[0]; !k.HttpOnly || k.SameSite != http.SameSiteStrictMode || k.Path != Root || k.Domain != "" || strings.Contains(k.Value, key) {
		t.Errorf("%+v", k)
	}
	for name, test := range map[string]struct {
		target  string
		control access.Control
		status  int
	}{
		"a wrong code":                  {Root + "?code=x", local(), 401},
		"an empty code":                 {Root + "?code=", local(), 401},
		"a code in Azure":               {Root + "?code=" + key, access.Control{EasyAuth: true, LocalKey: key}, 200},
		"a code where no key is needed": {Root + "?code=" + key, access.Control{Development: true}, 200},
	} {
		rec := get(t, newConsole(t, typical(), test.control), test.target)
		if rec.Code != test.status || len(rec.Result().Cookies()) > 0 || strings.Contains(rec.Body.String(), key) {
			t.Errorf("%s: %d, %d cookies", name, rec.Code, len(rec.Result().Cookies()))
		}
	}
}

// A cookie opens the console that set it, at its own host, and is the key of the API there only.
func TestCookie(t *testing.T) {
	t.Parallel()
	good := get(t, newConsole(t, typical(), local()), Root+"?code="+key).Result().Cookies()[0]
	given := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: good.Name, Value: value}) }
	}
	for name, test := range map[string]struct {
		control access.Control
		change  func(*http.Request)
		key     string
	}{
		"right":                    {local(), given(good.Value), key},
		"none":                     {local(), func(*http.Request) {}, ""},
		"another":                  {local(), given(good.Value[1:]), ""},
		"the key itself":           {local(), given(key), ""},
		"of another host":          {local(), func(r *http.Request) { given(good.Value)(r); r.Host = "127.0.0.1:7071" }, ""},
		"of a host of the proxy's": {local(), func(r *http.Request) { given(good.Value)(r); r.Header.Set("X-Forwarded-Host", "127.0.0.1:7071") }, ""},
		"of another key":           {access.Control{Development: true, LocalKey: "other"}, given(good.Value), ""},
		"in Azure":                 {access.Control{EasyAuth: true, LocalKey: key}, given(good.Value), ""},
		"where no key is needed":   {access.Control{Development: true}, given(good.Value), ""},
	} {
		a := &calls{answers: typical()}
		rec := get(t, newConsole(t, a, test.control), causesPath, test.change)
		if len(a.got) == 0 {
			t.Fatalf("%s: %d, and the API was not asked", name, rec.Code)
		}
		if got := a.got[0].Header.Get("x-functions-key"); got != test.key {
			t.Errorf("%s: the API got the key %q", name, got)
		}
	}
}
