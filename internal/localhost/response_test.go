package localhost

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// TestAnswers has a row for every kind of answer that the real host distinguishes.
func TestAnswers(t *testing.T) {
	t.Parallel()
	i := wired(t, behaviours())
	for _, test := range []struct {
		function string
		rule     string // of the violation; "": none
		failure  string // part of the error; "": success
	}{
		{"good", "", ""},
		{"textjson", "", ""},
		{"casing", "", ""},
		{"redirect", "", ""},
		{"empty", RuleEmptyBody, "hang"},
		{"nocontent", RuleEmptyBody, "hang"},
		{"blank", RuleNullBody, "hang"},
		{"null", RuleNullBody, "hang"},
		{"text", RuleContentType, `"text/plain"`},
		{"untyped", RuleContentType, `""`},
		{"malformed", RuleMalformed, "not JSON"},
		{"array", RuleMalformed, "array, not an object"},
		{"logs", RuleMalformed, "Logs"},
		{"outputs", RuleMalformed, "Outputs cannot be a JSON array"},
		{"fail", "", "status 500"},
		{"missing", "", "status 404"},
		{"notmodified", "", "status 304"},
		{"around", "", "status 302"},
		{"away", "", "leaves the handler"},
		{"reset", "", "EOF"},
	} {
		t.Run(test.function, func(t *testing.T) {
			t.Parallel()
			_, err := i.invoke(t.Context(), test.function, "id", newEnvelope(test.function, time.Now()))
			var violation *Violation
			rule := ""
			if errors.As(err, &violation) {
				rule = violation.Rule
				if violation.Function != test.function {
					t.Errorf("violation names function %q", violation.Function)
				}
			}
			if rule != test.rule {
				t.Errorf("rule %q, want %q (error %v)", rule, test.rule, err)
			}
			if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
				t.Errorf("error %v, want %q", err, test.failure)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("error quotes the body: %v", err)
			}
		})
	}
}

func TestAnswerMembersMatchInAnyCaseButOutputNames(t *testing.T) {
	t.Parallel()
	got, err := judge("f", reply{200, "application/json", []byte(`{"outputs":{"Out":"a","out":"b"},"LOGS":["l",1,true,null],"returnvalue":{"x":1},"more":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	want := result{
		Outputs:     map[string]json.RawMessage{"Out": json.RawMessage(`"a"`), "out": json.RawMessage(`"b"`)},
		Logs:        []string{"l", "1", "true"},
		ReturnValue: json.RawMessage(`{"x":1}`),
	}
	testenv.Equal(t, "", want, got)
}

// FuzzJudge checks that any answer is judged without a panic, and that success needs a JSON object.
func FuzzJudge(f *testing.F) {
	f.Add(200, "application/json", []byte(`{"Outputs":{"a":1},"Logs":["x"],"ReturnValue":null}`))
	f.Add(204, "", []byte(nil))
	f.Add(200, "text/json; charset=x", []byte("null"))
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		_, err := judge("f", reply{status, contentType, body})
		if err == nil && (status < 200 || status > 299 || len(body) < 2) {
			t.Errorf("status %d, body %q succeeded", status, body)
		}
	})
}
