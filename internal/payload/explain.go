package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ByteOrderMark begins texts of some senders, and is not part of JSON.
const ByteOrderMark = "\xef\xbb\xbf"

// Explain returns an error of decoding JSON in the words of JSON: the decoder names the types of this program, which
// senders of documents do not know. Other errors stay as they are.
func Explain(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := wrong.Field
		if what == "" {
			what = "the value"
		}
		article := "a"
		if wrong.Value == "array" || wrong.Value == "object" {
			article = "an"
		}
		return fmt.Errorf("%s is %s %s, and has to be %s", what, article, wrong.Value, kindOf(wrong.Type))
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("this is no JSON, at byte %d: %w", syntax.Offset, syntax)
	}
	if err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf("unknown field %s", name)
		}
	}
	return err
}

// kindOf returns a type in the words of JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number in its range"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	default:
		return "an object"
	}
}
