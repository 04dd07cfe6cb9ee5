package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// contract is the document for its users.
var contract = sync.OnceValues(func() (*openapi3.T, error) {
	for _, text := range []string{"application/openmetrics-text", "application/vnd.google.protobuf"} {
		openapi3filter.RegisterBodyDecoder(text, openapi3filter.PlainBodyDecoder)
	}
	openapi3filter.RegisterBodyDecoder(healthType, openapi3filter.JSONBodyDecoder)
	doc, err := openapi3.NewLoader().LoadFromData(openAPIDocument)
	if err != nil {
		return nil, err
	}
	var options []openapi3.ValidationOption
	if testing.Short() {
		options = append(options, openapi3.DisableExamplesValidation()) // which takes most of the time
	}
	return doc, doc.Validate(context.Background(), options...)
})

func theContract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := contract()
	testenv.OK(t, err)
	return doc
}

// documented returns the operation of the document that a request is for, with the parameters of its path; nil for
// none.
func documented(doc *openapi3.T, req *http.Request) (*routers.Route, map[string]string) {
	method := req.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	got := strings.Split(strings.TrimSuffix(req.URL.EscapedPath(), "/"), "/")[1:]
	got[0] = ""                                        // the address of the document's server
	for _, path := range doc.Paths.InMatchingOrder() { // the fewest parameters come first
		want, params := strings.Split(path, "/"), map[string]string{}
		matches := len(got) == len(want)
		for i := 0; matches && i < len(want); i++ {
			if name, ok := strings.CutPrefix(want[i], "{"); ok {
				value, err := url.PathUnescape(got[i])
				params[strings.TrimSuffix(name, "}")] = value
				matches = err == nil && value != ""
				continue
			}
			matches = strings.EqualFold(want[i], got[i])
		}
		item := doc.Paths.Value(path)
		if matches && item.GetOperation(method) != nil {
			return &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)}, params
		}
	}
	return nil, nil
}

// compared counts the answers that conform has compared in a short run, by operation and status.
var compared sync.Map

// conform compares an answer with the document, and also the request, if it was understood. An undocumented answer
// must be an error in the general form. Requests for other parts of the server are ignored.
func conform(t *testing.T, req *http.Request, body string, rec *httptest.ResponseRecorder) {
	t.Helper()
	if !strings.HasPrefix(strings.ToLower(req.URL.Path), "/api") {
		return
	}
	doc := theContract(t)
	route, params := documented(doc, req)
	documentedHere := route != nil
	if documentedHere && testing.Short() { // which compares the first answer of each kind: each one compiles its schema again
		if n, _ := compared.LoadOrStore(fmt.Sprint(req.Method, route.Path, rec.Code), new(atomic.Int32)); n.(*atomic.Int32).Add(1) > 1 {
			return
		}
	}
	if !documentedHere {
		if rec.Code != http.StatusNotFound && rec.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d, but the document has no such operation", req.Method, req.URL, rec.Code)
			return
		}
		item := doc.Paths.Value("/history")
		route = &routers.Route{Spec: doc, Path: "/history", PathItem: item, Method: http.MethodGet, Operation: item.Get}
	}
	clone := req.Clone(context.Background())
	clone.Body = io.NopCloser(strings.NewReader(body))
	if body != "" && clone.Header.Get("Content-Type") == "" {
		clone.Header.Set("Content-Type", "application/json") // the program accepts no other anyway
	}
	options := &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
	in := &openapi3filter.RequestValidationInput{Request: clone, PathParams: params, Route: route, Options: options}
	if rec.Code < http.StatusBadRequest && req.Method != http.MethodHead {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			t.Errorf("%s %s %.200s was understood, but the document does not allow it: %v", req.Method, req.URL, body, err)
		}
	}
	if rec.Header().Get("Content-Type") == problemType {
		conformProblem(t, rec)
		options.ExcludeResponseBody = true
	}
	// Any request can be answered with 405, and with 413 or 415 for its body. Every other error of a caller is the operation's own.
	if c := rec.Code; c >= 400 && c < 500 && c != http.StatusMethodNotAllowed && c != http.StatusRequestEntityTooLarge && c != http.StatusUnsupportedMediaType &&
		documentedHere && route.Operation.Responses.Status(c) == nil {
		t.Errorf("%s %s: the document does not have the answer %d", req.Method, req.URL, c)
	}
	in.Request = clone
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: rec.Code, Header: rec.Header(), Options: options}
	out.SetBodyBytes(rec.Body.Bytes())
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		t.Errorf("%s %s: %d: the answer is not what the document says: %v", req.Method, req.URL, rec.Code, err)
	}
}

// conformProblem compares an error with the description of RFC 9457 in the document: exactly its members. Clients
// request this media type by its name; as a second one of every error it would make generated clients narrow both.
func conformProblem(t *testing.T, rec *httptest.ResponseRecorder) {
	t.Helper()
	var got problemBody
	decoder := json.NewDecoder(bytes.NewReader(rec.Body.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil || got.Status != rec.Code || got.Title == "" || got.Detail == "" || got.Code == "" || got.CorrelationID == "" || got.Timestamp.IsZero() {
		t.Errorf("no problem as RFC 9457 has it: %v\n%s", err, rec.Body)
	}
}

// Every route has a specification, and every specification a route; both name the same permission.
func TestDocumentHasAllRoutes(t *testing.T) {
	t.Parallel()
	var routes, specified []string
	for _, r := range Routes() {
		segments := strings.Split(r.Path, "/")
		for i, s := range segments {
			if name, ok := strings.CutPrefix(s, ":"); ok {
				segments[i] = "{" + name + "}"
			}
		}
		routes = append(routes, r.Method+" "+strings.Join(segments, "/")+" "+string(r.Permission))
	}
	for path, item := range theContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			specified = append(specified, fmt.Sprintf("%s /api%s %v", method, path, op.Extensions["x-permission"]))
		}
	}
	slices.Sort(routes)
	slices.Sort(specified)
	testenv.Equal(t, "the routes of the document and of the program", specified, routes)
}

// Every operation can be refused, and every change can fail to be recorded. The probes are public, at one address.
func TestDocumentHasRefusals(t *testing.T) {
	t.Parallel()
	doc := theContract(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			need, _ := op.Extensions["x-permission"].(string)
			public, changes := need == string(access.Public), access.Permission(need).Changes()
			for code, want := range map[int]bool{http.StatusUnauthorized: !public, http.StatusForbidden: !public, http.StatusServiceUnavailable: changes} {
				if got := op.Responses.Status(code) != nil; got != want && !strings.HasPrefix(path, "/health/") {
					t.Errorf("%s %s needs %s: answers %d: %v, want %v", method, path, need, code, got, want)
				}
			}
			testenv.Equal(t, fmt.Sprintf("%s %s needs %s: for anybody", method, path, need), public, op.Security != nil && len(*op.Security) == 0 && op.Servers != nil && len(*op.Servers) == 1)
		}
	}
	var servers, permissions []string
	for _, s := range doc.Servers {
		servers = append(servers, s.URL+"/")
	}
	testenv.Equal(t, "servers", []string{"/api/", access.MachinePrefix}, servers)
	for _, p := range access.Permissions() {
		permissions = append(permissions, string(p))
	}
	testenv.Equal(t, "permissions of the program and of the document", permissions, names(doc, "Permission"))
	var roles []string
	for _, r := range access.Roles() {
		roles = append(roles, string(r))
	}
	testenv.Equal(t, "roles of the program and of the document", roles, names(doc, "Role"))
}

// names returns the values of a schema that enumerates them.
func names(doc *openapi3.T, schema string) (values []string) {
	for _, v := range doc.Components.Schemas[schema].Value.Enum {
		values = append(values, v.(string))
	}
	return values
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	b := newBench(t, tables.NewMemory())
	rec := b.do(t, http.MethodGet, "/api/openapi.json")
	if rec.Code != http.StatusOK || !bytes.Equal(rec.Body.Bytes(), openAPIDocument) || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
}

// The document is usable for readers and generators.
func TestDocumentIsTidy(t *testing.T) {
	t.Parallel()
	doc := theContract(t)
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || doc.Info.License == nil || doc.Info.License.Name != "MIT" {
		t.Errorf("version %s, license %+v", doc.OpenAPI, doc.Info.License)
	}
	tags, ids := map[string]bool{}, map[string]string{}
	for _, tag := range doc.Tags {
		tags[tag.Name] = tag.Description != ""
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if other, taken := ids[op.OperationID]; taken || op.OperationID == "" {
				t.Errorf("%s: operation id %q is that of %q, too", where, op.OperationID, other)
			}
			ids[op.OperationID] = where
			if op.Summary == "" || strings.HasSuffix(op.Summary, ".") || len(op.Tags) != 1 || !tags[op.Tags[0]] {
				t.Errorf("%s: summary %q, tags %v", where, op.Summary, op.Tags)
			}
			if !slices.ContainsFunc(op.Responses.Keys(), func(code string) bool { return code[0] == '4' }) {
				t.Errorf("%s: there is no error of the caller's among %v", where, op.Responses.Keys())
			}
			if op.Responses.Default() == nil || !slices.ContainsFunc(op.Responses.Keys(), func(code string) bool { return code[0] == '2' }) {
				t.Errorf("%s: an answer is missing, there are %v", where, op.Responses.Keys())
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s: %s has no description", where, p.Value.Name)
				}
				if p.Value.In == openapi3.ParameterInPath && !strings.Contains(path, "{"+p.Value.Name+"}") {
					t.Errorf("%s: %s is not in the path", where, p.Value.Name)
				}
			}
			if method == http.MethodGet && op.RequestBody != nil {
				t.Errorf("%s has a body", where)
			}
		}
	}
	used := string(openAPIDocument)
	for name, schema := range doc.Components.Schemas {
		if !strings.Contains(used, fmt.Sprintf("%q", "#/components/schemas/"+name)) {
			t.Errorf("schema %s is not used", name)
		}
		tidy(t, name, schema)
	}
}

// tidy checks that an object has a description, describes its members and is closed, so that an answer with an
// additional member fails.
func tidy(t *testing.T, where string, s *openapi3.SchemaRef) {
	t.Helper()
	if s == nil || s.Ref != "" && strings.Contains(where, ".") {
		return
	}
	v := s.Value
	if v.Description == "" && !strings.HasSuffix(where, "[]") && v.Const == nil {
		t.Errorf("%s has no description", where)
	}
	if v.Type.Is("object") && v.AdditionalProperties.Has == nil && v.AdditionalProperties.Schema == nil {
		t.Errorf("%s takes members that it does not name", where)
	}
	if v.Default != nil {
		t.Errorf("%s has a default, which makes generators require it", where)
	}
	for _, name := range v.Required {
		if v.Properties[name] == nil {
			t.Errorf("%s requires %s, which it does not have", where, name)
		}
	}
	for name, property := range v.Properties {
		tidy(t, where+"."+name, property)
	}
	if v.Items != nil {
		tidy(t, where+"[]", v.Items)
	}
	if v.AdditionalProperties.Schema != nil {
		tidy(t, where+".[]", v.AdditionalProperties.Schema)
	}
}

// Every body has an example, and so has every parameter of a path. The loader of the document checks each with its
// schema.
func TestDocumentHasExamples(t *testing.T) {
	t.Parallel()
	doc := theContract(t)
	check := func(where string, content openapi3.Content) {
		for mediaType, media := range content {
			if media.Example == nil && mediaType != "application/vnd.google.protobuf" { // which is no text
				t.Errorf("%s: %s has no example", where, mediaType)
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if op.RequestBody != nil {
				check(where, op.RequestBody.Value.Content)
			}
			for code, answer := range op.Responses.Map() {
				check(where+" "+code, answer.Value.Content)
				types := slices.Collect(maps.Keys(answer.Value.Content))
				if code[0] == '4' && len(types) > 1 {
					t.Errorf("%s %s: generated clients want one media type for an error, not %v", where, code, types)
				}
			}
			for _, p := range op.Parameters {
				if p.Value.In == openapi3.ParameterInPath && p.Value.Example == nil {
					t.Errorf("%s: %s has no example", where, p.Value.Name)
				}
			}
		}
	}
}

// A request built from the document's examples is understood: only its object is missing. Errors in examples have
// known codes.
func TestRequestExamplesAreUnderstood(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	for path, item := range theContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			target, headers, query := "/api"+path, []string(nil), url.Values{}
			for _, p := range op.Parameters {
				value, _ := p.Value.Example.(string)
				switch {
				case p.Value.In == openapi3.ParameterInPath:
					target = strings.ReplaceAll(target, "{"+p.Value.Name+"}", url.PathEscape(value))
				case p.Value.In == openapi3.ParameterInQuery && p.Value.Required:
					query.Set(p.Value.Name, value)
				case p.Value.In == openapi3.ParameterInHeader && value != "":
					headers = append(headers, p.Value.Name, value)
				}
			}
			if len(query) > 0 {
				target += "?" + query.Encode()
			}
			body := ""
			if op.RequestBody != nil {
				text, err := json.Marshal(op.RequestBody.Value.Content.Get("application/json").Example)
				testenv.OK(t, err)
				body = string(text)
			}
			rec := b.send(t, method, target, body, headers...)
			if rec.Code == http.StatusBadRequest && decode(t, rec).Error.Code != codeUnknownOrchestrator || rec.Code >= http.StatusInternalServerError {
				t.Errorf("%s %s %s: %d %s", method, target, body, rec.Code, rec.Body)
			}
		}
	}
}
