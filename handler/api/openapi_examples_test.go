package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Every body that a caller sends or gets has an example, and so has every parameter of a path. The loader of the document
// holds each against its schema.
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

// A request made of a document's examples is understood: what is missing is only what it is about. Errors that are examples
// have codes that the program knows.
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
				testenv.Check(t, err)
				body = string(text)
			}
			rec := b.send(t, method, target, body, headers...)
			if rec.Code == http.StatusBadRequest && decode(t, rec).Error.Code != codeUnknownOrchestrator || rec.Code >= http.StatusInternalServerError {
				t.Errorf("%s %s %s: %d %s", method, target, body, rec.Code, rec.Body)
			}
		}
	}
}
