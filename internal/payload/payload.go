// Package payload decides which JSON may be stored: inputs, results, events, answers, messages. Code that stores JSON
// calls it first, and code that accepts JSON from outside calls it as early as possible. So no value is accepted that
// its reader would refuse. Readers of JSON in this program bound the depth themselves, at 10,000 levels including the
// wrapping of a value; the limits here are far below.
//
// It owns no storage keys.
package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/internal/storage"
)

const (
	// MaxDepth is the limit for nested arrays and objects. It leaves room for the wrapping of a value in rounds, messages
	// and exports.
	MaxDepth = 500
	// MaxBytes bounds one value, in bytes of JSON. A blob of 64 MiB has room for it and its wrapping.
	MaxBytes = 60 << 20
	// historyDepth is the number of levels that a history adds to its values.
	historyDepth = 50
)

var (
	// ErrTooDeep means that JSON is nested deeper than MaxDepth.
	ErrTooDeep = errors.New("nested too deep")
	// ErrTooLarge means that JSON has more than MaxBytes. It is that of the storage packages.
	ErrTooLarge = storage.ErrTooLarge
	// ErrEncoded reports a compressed body. Its text is for callers.
	ErrEncoded = errors.New("the body has a Content-Encoding: send it without, as plain JSON")
)

// Check checks whether JSON may be stored: the error is ErrTooLarge or ErrTooDeep, with the limit. It does not check
// that text is JSON.
func Check(text []byte) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("%w: %d bytes of JSON, %d are allowed: keep it elsewhere and hand over a reference", ErrTooLarge, len(text), MaxBytes)
	}
	if deeperThan(text, MaxDepth) {
		return fmt.Errorf("%w: %d levels of arrays and objects are allowed", ErrTooDeep, MaxDepth)
	}
	return nil
}

// CheckHistory is Check for a history of an orchestration, whose values are wrapped in rounds.
func CheckHistory(text []byte) error {
	if len(text) > MaxBytes {
		return Check(text)
	}
	if most := MaxDepth + historyDepth; deeperThan(text, most) {
		return fmt.Errorf("%w: %d levels of arrays and objects are allowed in a history", ErrTooDeep, most)
	}
	return nil
}

// CheckEncoding returns ErrEncoded for a compressed body.
func CheckEncoding(encodings []string) error {
	for _, encoding := range strings.Split(strings.Join(encodings, ","), ",") {
		if encoding = strings.TrimSpace(encoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
			return ErrEncoded
		}
	}
	return nil
}

// Marshal is json.Marshal without the escapes for HTML. They make a value up to six times as long, so that it would
// exceed limits that it met before.
func Marshal(v any) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err != nil || !bytes.Contains(text, []byte(`\u`)) { // all escapes for HTML start like this; few values have any
		return text, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// TooDeep returns the answer to JSON that is nested too deep: one sentence with the limit. The wrapping of a request in
// transit counts, too.
func TooDeep() string {
	return fmt.Sprintf("The body is %v: %d levels of arrays and objects are allowed, those that it travels in included.", ErrTooDeep, MaxDepth)
}

// deeperThan reports whether arrays and objects are nested deeper than most.
func deeperThan(text []byte, most int) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			if depth++; depth > most {
				return true
			}
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return false
}
