package handler_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/sample"
)

// attackRequests is the number of requests of a run, and fewest the number with -short.
const (
	attackRequests = 10_500
	attacksInShort = 1_000
)

// attacker is a caller without rights to the data of the tenants blue and home and to data without a tenant. reads
// has the marks that it can read, and weight is its share of the requests.
type attacker struct {
	name   string
	sign   func(*http.Request)
	reads  []string
	weight int
}

func attackers(m market) []attacker {
	person := func(tenant, object string, application bool, roles ...string) func(*http.Request) {
		return accesstest.Caller{Tenant: tenant, Object: object, Name: object + "@example.com", Application: application, AppRoles: roles}.Sign
	}
	raw := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("X-MS-CLIENT-PRINCIPAL", value) }
	}
	red := []string{"red"}
	return []attacker{
		{"anonymous", func(*http.Request) {}, nil, 1},
		{"a damaged principal", raw("e30x"), nil, 1},
		{"a principal of another provider", raw(base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"auth_typ":"google","claims":[{"typ":"tid","val":%q},{"typ":"oid","val":%q},{"typ":"roles","val":"Roundhouse.Administrator"}]}`,
			accesstest.ID("home"), accesstest.ID("ann of home")))), nil, 1},
		{"red participant", person("red", "pat", false), red, 2},
		{"red application", person("red", "app", true), red, 1},
		{"red reader", person("red", "rita", false, "Roundhouse.Reader"), red, 4},
		{"red operator", person("red", "olga", false, "Roundhouse.Operator"), red, 8},
		{"red administrator", m.red.Sign, red, 4},
		{"home application without a role", person("home", "app", true), nil, 2},
	}
}

// mark returns a text of a tenant that is in no id, so that no answer repeats it from its request.
func mark(word string) string { return "plan-of-" + word }

// attack draws requests to routes with valid and damaged ids, tokens and inputs of tenants.
type attack struct {
	*rand.Rand
	routes []handler.Route
	ids    map[string][]string // by the names of parameters
	tokens []string            // continuation tokens of lists
}

func pick[T any](a *attack, from []T) T { return from[a.IntN(len(from))] }

// id draws an id of a pool, often damaged.
func (a *attack) id(name string) string {
	pool := a.ids[name]
	if len(pool) == 0 || a.IntN(8) == 0 {
		pool = slices.Concat(a.ids["orchestration"], a.ids["rowKey"], a.ids["tenant"], a.ids["id"], a.ids["instance"])
	}
	id := pick(a, pool)
	switch a.IntN(16) {
	case 0:
		return strings.ToUpper(id)
	case 1:
		return id + pick(a, []string{"\x00", " ", "/", "%", "'", "~", "\u202e", "..", "\n", "?x", "#"})
	case 2:
		return pick(a, []string{"../", "./", "%2e%2e/", "//", " ", "'", "\ufeff"}) + id
	case 3:
		return strings.Replace(id, "e", "\u0435", 1) // a homoglyph
	case 4:
		return pick(a, []string{"", ".", "..", "*", "null", "' or PartitionKey ne '", strings.Repeat("x", 2000), "\xff\xfe"})
	case 5:
		return url.PathEscape(id)
	default:
		return id
	}
}

var pathParameter = regexp.MustCompile(`:([A-Za-z]+)`)

// path draws a route's path with ids and a query.
func (a *attack) path(r handler.Route) string {
	path := pathParameter.ReplaceAllStringFunc(r.Path, func(segment string) string {
		id := a.id(segment[1:])
		if a.IntN(12) == 0 {
			return strings.ReplaceAll(url.PathEscape(id), "%2F", "/")
		}
		return url.PathEscape(id)
	})
	query := url.Values{}
	for range a.IntN(4) {
		switch a.IntN(6) {
		case 0:
			query.Set("continuationToken", a.token())
		case 1:
			query.Set(pick(a, []string{"tenantId", "tenant"}), a.id("tenant"))
		case 2:
			query.Set(pick(a, []string{"correlationId", "instanceId", "target", "principal", "idPrefix", "orchestrator", "assignee", "role", "errorSignature"}), a.id("orchestration"))
		case 3:
			query.Set("limit", pick(a, []string{"1", "0", "-1", "100", "101", "9999999999999999999", "x"}))
		case 4:
			query.Set(pick(a, []string{"fromDate", "toDate", "dueBefore", "endedBefore"}), pick(a, []string{"2020-01-01", "9999-12-31T23:59:59Z", "0000", "'"}))
		case 5:
			query.Set(pick(a, []string{"status", "engine", "view", "showHistory", "force", "code", "reason"}), pick(a, []string{"Pending", "Running", "all", "true", "shop", "\x00", "dead"}))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// token draws a continuation token of another list or another caller, often damaged.
func (a *attack) token() string {
	token := pick(a, a.tokens)
	if a.IntN(2) == 0 {
		return token
	}
	raw := []byte(token)
	raw[a.IntN(len(raw))] ^= byte(1 << a.IntN(7))
	return string(raw[:a.IntN(len(raw))+1])
}

// body draws a body with valid members and members of other routes.
func (a *attack) body() string {
	text := func(id string) string { return fmt.Sprintf("%q", strings.ToValidUTF8(id, "?")) }
	members := []string{`"reason":"x"`, `"text":"x"`, `"status":"Resolved"`, `"status":"Expired"`, `"output":true`, `"assignee":` + text(a.id("tenant")+"/"+accesstest.ID("ann")),
		`"tenantId":` + text(a.id("tenant")), `"instanceId":` + text(a.id("instance")), `"correlationId":` + text(a.id("correlationId")),
		`"orchestrator":"` + pick(a, []string{"shop", "depot", "bulk-dead-letters", "x"}) + `"`,
		`"input":{"instanceId":` + text(a.id("instance")) + `,"tenantId":` + text(a.id("tenant")) + `,"input":{"of":` + text(a.id("tenant")) + `}}`,
		`"message":"{\"instanceId\":\"instance-blue\",\"tenantId\":\"` + accesstest.ID("blue") + `\",\"input\":{}}"`, `"endpoints":{"events":"https://10.0.0.1/"}`,
		`"engine":"shop"`, `"olderThanDays":0`, `"id":` + text(a.id("orchestration")), `"reuse":"any"`, `"by":` + text(accesstest.ID("home")+"/x"), `"metadata":{"a":[[[[1]]]]}`}
	a.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	switch a.IntN(12) {
	case 0:
		return pick(a, []string{"", "null", "[]", "1", "{", `{"a":1}{}`, strings.Repeat(`[`, 3000), `{"reason":1}`, "\xff", strings.Repeat("x", 70_000)})
	case 1:
		return "{" + strings.Join(members, ",") + "}"
	default:
		return "{" + strings.Join(members[:1+a.IntN(4)], ",") + "}"
	}
}

// request draws an attacker's next request.
func (a *attack) request(t *testing.T, as attacker) *http.Request {
	t.Helper()
	route := pick(a, a.routes)
	method, path := route.Method, a.path(route)
	if a.IntN(20) == 0 {
		method = pick(a, []string{"PUT", "OPTIONS", "HEAD", "TRACE", "PATCH", "DELETE", "POST"})
	}
	u, err := url.ParseRequestURI(path)
	if err != nil { // no server hands it on
		u = &url.URL{Path: route.Path}
	}
	header, body := http.Header{}, ""
	if method != http.MethodGet && method != http.MethodHead {
		body = a.body()
		if strings.HasPrefix(route.Path, "/api/console") {
			body = url.Values{"key": {"k"}, "reason": {"x"}, "etag": {"*"}, "assignee": {a.id("tenant")}, "note": {"x"}, "value": {"1"}, "instanceId": {a.id("instance")}}.Encode()
			header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
	r.Header, r.URL, r.Host, r.RequestURI = header, u, "localhost", path
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", pick(a, []string{"application/json", "application/json", "text/plain", ""}))
	}
	if a.IntN(4) > 0 {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for range a.IntN(3) {
		name := pick(a, []string{"If-Match", "Idempotency-Key", "x-correlation-id", "x-functions-key", "X-Forwarded-For", "X-Forwarded-Host", "Origin", "Accept", "x-ms-client-principal-id", "X-MS-CLIENT-PRINCIPAL-NAME", "X-Original-URL", "X-HTTP-Method-Override"})
		r.Header.Set(name, pick(a, []string{"*", `"x"`, `W/"datetime'2020'"`, "k", accesstest.ID("home"), "127.0.0.1", "evil.example", "https://evil.example", "application/problem+json", "/api/machine/audit", "DELETE", "DbMaster"}))
	}
	as.sign(r)
	return r
}

// allowed reports whether a status is an allowed answer to an attacker. 501 is the answer to entities.
func allowed(status int) bool {
	return slices.Contains([]int{200, 201, 202, 204, 302, 303, 304, 307, 400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 422, 429, 501}, status)
}

// Callers without rights send requests to all routes of the manifest, with ids, tokens and inputs of others. Every
// answer has an allowed status and no data of another tenant, and the data of others is unchanged.
func TestAttacks(t *testing.T) {
	t.Parallel()
	sample.Repeat(t)
	m := newMarketWith(t, "0", func(*handler.Config) {})
	victims := []string{"blue", "home", "none"}
	for _, word := range append([]string{"red"}, victims...) {
		tenant := word
		if word == "none" {
			tenant = ""
		}
		for what, input := range map[string]string{"secret": `{"note":"` + mark(word) + `"}`, "lost": `{"fail":true,"note":"` + mark(word) + `"}`} {
			m.Send("shop-queue", fmt.Sprintf(`{"correlationId":"%s-%s","instanceId":"instance-%s","tenantId":%q,"input":%s}`, word, what, word, tenantOf(tenant), input))
		}
	}
	m.Deliver()
	a := &attack{Rand: rand.New(rand.NewPCG(uint64(sample.Seeds(t, 1024)[0]), 33)), ids: map[string][]string{}}
	for _, r := range m.Manifest().Access.Routes {
		if r.Opens == "" {
			a.routes = append(a.routes, r)
		}
	}
	theirs := map[string][2]string{} // what victims have
	for _, word := range append([]string{"red"}, victims...) {
		for name, thing := range m.things(t, m.home, word) {
			path := strings.Split(strings.TrimPrefix(thing[1], "/api/"), "/")
			switch path[0] {
			case "dlq", "history":
				a.ids["rowKey"] = append(a.ids["rowKey"], unescaped(path[2]))
			case "tasks":
				a.ids["task"] = append(a.ids["task"], unescaped(path[2]))
			case "workflow":
				a.ids["id"] = append(a.ids["id"], unescaped(path[3]))
			}
			if thing[0] == http.MethodGet && word != "red" {
				theirs[word+" "+name] = thing
			}
		}
		for _, what := range []string{"waits", "fails", "secret", "lost"} {
			a.ids["orchestration"] = append(a.ids["orchestration"], "shop-"+word+"-"+what)
			a.ids["correlationId"] = append(a.ids["correlationId"], word+"-"+what)
		}
		a.ids["tenant"] = append(a.ids["tenant"], tenantOf(word))
		a.ids["instance"] = append(a.ids["instance"], "instance-"+word, "shop-"+word+"-waits")
		if word != "red" {
			theirs[word+" instance"] = [2]string{http.MethodGet, "/api/registry/instance-" + word}
			theirs[word+" secret"] = [2]string{http.MethodGet, "/api/orchestrations/shop-" + word + "-secret/rounds"}
		}
	}
	a.ids["engine"], a.ids["event"], a.ids["name"] = []string{"shop", "depot", "_signals", "nothing"}, []string{"go", "human-task"}, []string{"shop", "depot"}
	token := regexp.MustCompile(`"continuationToken":"([^"]+)"`)
	for _, path := range lists() {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		_, answer := m.get(t, path+separator+"limit=1", m.home)
		if found := token.FindStringSubmatch(answer); found != nil {
			a.tokens = append(a.tokens, found[1])
		}
	}
	if len(a.tokens) < 5 {
		t.Fatalf("%d continuation tokens", len(a.tokens))
	}
	state := func() map[string]string {
		out := map[string]string{}
		for name, thing := range theirs {
			_, answer := m.get(t, thing[1], m.home)
			out[name] = changing.ReplaceAllString(answer, "")
		}
		return out
	}
	before, statuses := state(), map[int]int{}
	var hostile []attacker
	for _, as := range attackers(m) {
		hostile = append(hostile, slices.Repeat([]attacker{as}, as.weight)...)
	}
	requests := attackRequests
	if testing.Short() {
		requests = attacksInShort
	}
	for n := range requests {
		as := pick(a, hostile)
		r := a.request(t, as)
		line := fmt.Sprintf("%s: %s %.300s", as.name, r.Method, r.RequestURI)
		rec := httptest.NewRecorder()
		m.ServeHTTP(rec, r)
		statuses[rec.Code]++
		if !allowed(rec.Code) {
			t.Errorf("%s: %d %.300s", line, rec.Code, rec.Body)
		}
		answer := strings.ToLower(rec.Body.String())
		for _, word := range append([]string{"red"}, victims...) {
			if at := strings.Index(answer, mark(word)); at >= 0 && !slices.Contains(as.reads, word) {
				t.Errorf("%s: shows what belongs to %s: %.200s", line, word, answer[max(0, at-100):])
			}
		}
		if n%1000 == 999 {
			m.Deliver()
		}
	}
	m.Deliver()
	after := state()
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s was changed:\n%s\n%s", name, was, after[name])
		}
	}
	for status, least := range map[int]int{200: 10, 400: 10, 401: 10, 403: 10, 404: 10} { // in a thousand
		if statuses[status] < least*requests/1000 {
			t.Errorf("the attacks are of one kind: %v", statuses)
		}
	}
	t.Logf("%d requests: %v", requests, statuses)
}

// changing matches the members of answers that differ between requests.
var changing = regexp.MustCompile(`"(correlationId|timestamp)":"[^"]*",?`)

func unescaped(segment string) string {
	text, err := url.PathUnescape(segment)
	if err != nil {
		return segment
	}
	return text
}
