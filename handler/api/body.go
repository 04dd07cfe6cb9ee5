package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/payload"
)

// text reads the body, up to its limit.
func (r *request) text() ([]byte, error) {
	if err := payload.CheckEncoding(r.http.Header.Values("Content-Encoding")); err != nil {
		return nil, &failure{status: http.StatusUnsupportedMediaType, header: map[string]string{"Accept-Encoding": "identity"},
			problem: problem{Code: codeEncodedBody, Message: "The body has a Content-Encoding. Send it without, as plain JSON."}}
	}
	text, err := io.ReadAll(r.http.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, bodyTooLarge(tooLarge.Limit)
	case err != nil:
		return nil, badBody("", "The body broke off.")
	}
	return bytes.TrimPrefix(text, []byte(payload.ByteOrderMark)), nil
}

// body reads the body within its limits; it need not be JSON.
func (r *request) body() ([]byte, error) {
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	return text, payload.Check(text)
}

// value reads the body, one JSON value; no body is null.
func (r *request) value() (json.RawMessage, error) {
	text, err := r.body()
	switch {
	case err != nil:
		return nil, err
	case len(text) == 0:
		return json.RawMessage("null"), nil
	case !utf8.Valid(text) || !json.Valid(text):
		return nil, badBody("", "Use one JSON value in UTF-8.")
	}
	return text, nil
}

// decode reads the body, one JSON object without members that into does not have; no body leaves into as it is.
func (r *request) decode(into any) error {
	text, err := r.body()
	switch {
	case err != nil:
		return err
	case len(text) == 0:
		return nil
	case !utf8.Valid(text) || !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		return badBody("", "Use one JSON object in UTF-8.")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return undecodable(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badBody("", "There is something behind the JSON object.")
	}
	return nil
}

// undecodable describes the error in a body, without names of this program's types.
func undecodable(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return badBody(wrongType.Field, "Use a "+kindOf(wrongType.Type)+" for this member.")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return badBody(strings.Trim(name, `"`), "There is no such member.")
	}
	return badBody("", "The body is not JSON.")
}

// kindOf returns a type of this program as a JSON type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "whole number"
	case reflect.Bool:
		return "truth value"
	default:
		return "string"
	}
}

func badBody(target, text string) *failure {
	return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidBody, Message: text, Target: targetOf(target)}}
}

func bodyTooLarge(most int64) *failure {
	return &failure{status: http.StatusRequestEntityTooLarge, problem: problem{
		Code: codeBodyTooLarge, Message: fmt.Sprintf("The body may have %d bytes at most.", most),
	}}
}

// bodyTooDeep returns the answer to JSON that is too deep to store, wherever that was detected: levels that a request
// adds count, too.
func bodyTooDeep() *failure {
	return &failure{status: http.StatusBadRequest, problem: problem{Code: codeBodyTooDeep, Message: payload.TooDeep()}}
}
