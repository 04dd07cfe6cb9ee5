package localhost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
)

// Rules of the invocation protocol that a handler can break; [Violation.Rule] is one of them.
const (
	RuleEmptyBody   = "empty-body"   // a 2xx without a body: the real host hangs until functionTimeout and kills the handler
	RuleNullBody    = "null-body"    // a 2xx with null as its body: likewise
	RuleContentType = "content-type" // neither application/json nor text/json
	RuleMalformed   = "malformed"    // not JSON, or not an object of the protocol's form
)

// Violation is an answer that breaks the invocation protocol. The invocation has failed.
type Violation struct {
	Function string
	Rule     string
	Detail   string
}

// Error implements error.
func (v *Violation) Error() string {
	return fmt.Sprintf("function %s: the handler broke the protocol (%s): %s", v.Function, v.Rule, v.Detail)
}

// reply is a handler's answer with a status.
type reply struct {
	status      int
	contentType string
	body        []byte
}

// result is a successful invocation's outcome.
type result struct {
	Outputs     map[string]json.RawMessage
	Logs        []string
	ReturnValue json.RawMessage
}

// judge decides whether an invocation has succeeded, by the real host's rules.
func judge(function string, r reply) (result, error) {
	if r.status < 200 || r.status > 299 {
		return result{}, fmt.Errorf("function %s: the handler answered with status %d", function, r.status)
	}
	broken := func(rule, detail string) (result, error) {
		return result{}, &Violation{Function: function, Rule: rule, Detail: detail}
	}
	if len(r.body) == 0 {
		return broken(RuleEmptyBody, fmt.Sprintf("status %d without a body makes the real host hang until functionTimeout: answer at least {}", r.status))
	}
	mediaType, _, err := mime.ParseMediaType(r.contentType)
	if err != nil || mediaType != "application/json" && mediaType != "text/json" {
		return broken(RuleContentType, fmt.Sprintf("%q is not application/json", r.contentType))
	}
	if text := bytes.TrimSpace(r.body); len(text) == 0 || string(text) == "null" {
		return broken(RuleNullBody, "null makes the real host hang until functionTimeout: answer at least {}")
	}
	parsed, err := parseResult(r.body)
	if err != nil {
		return broken(RuleMalformed, err.Error())
	}
	return parsed, nil
}

func parseResult(body []byte) (result, error) {
	// The decoder matches the three names in any case, as the real host's does, but not those inside Outputs.
	var raw struct {
		Outputs     map[string]json.RawMessage
		Logs        []any
		ReturnValue json.RawMessage
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return result{}, describeJSON(err)
	}
	parsed := result{Outputs: raw.Outputs, ReturnValue: raw.ReturnValue}
	for _, line := range raw.Logs {
		switch v := line.(type) {
		case map[string]any, []any:
			return result{}, errors.New("the member Logs has to be an array of texts")
		case nil:
		default:
			parsed.Logs = append(parsed.Logs, fmt.Sprint(v))
		}
	}
	return parsed, nil
}

// describeJSON describes the error without quoting the body, which may hold secrets.
func describeJSON(err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("the body is not JSON (byte %d)", syntax.Offset)
	case errors.As(err, &mismatch) && mismatch.Field == "":
		return fmt.Errorf("the body is a JSON %s, not an object", mismatch.Value)
	case errors.As(err, &mismatch):
		return fmt.Errorf("%s cannot be a JSON %s", mismatch.Field, mismatch.Value)
	default:
		return errors.New("the body is not a JSON object of the protocol's form")
	}
}
