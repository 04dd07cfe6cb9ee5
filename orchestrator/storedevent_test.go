package orchestrator

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every field of a stored event is read and written again, for each kind of event with its own places for them.
func TestStoredEventsKeepAllFields(t *testing.T) {
	t.Parallel()
	for _, kind := range []eventKind{executionStarted, eventPublished, eventRaised} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var want storedEvent
			fields := reflect.ValueOf(&want).Elem()
			for i := range fields.NumField() {
				fill(t, fields.Type().Field(i).Name, fields.Field(i), i+1)
			}
			want.Kind, want.Payload = kind, json.RawMessage(`{"a":"<&>"}`)
			text, err := marshal(want)
			var read event
			noError(t, errors.Join(err, json.Unmarshal(text, &read)))
			if diff := cmp.Diff(want, read.stored()); diff != "" {
				t.Errorf("(-stored +read):\n%s", diff)
			}
			again, err := marshal(read)
			if diff := cmp.Diff(string(text), string(again)); err != nil || diff != "" {
				t.Errorf("%v, (-stored +stored again):\n%s", err, diff)
			}
			read.Start, read.Failure, read.Inherited, read.Origin = nil, nil, nil, nil // appendRound writes the remaining fields by itself
			r := round{Decided: []event{read}}
			text, errPlain := marshal(plain(r))
			again, err = appendRound(nil, r)
			if diff := cmp.Diff(string(text), string(again)); errors.Join(err, errPlain) != nil || diff != "" {
				t.Errorf("%v, %v, (-encoding/json +appendRound):\n%s", err, errPlain, diff)
			}
		})
	}
}

// fill gives a field a value that is not its zero value.
func fill(t *testing.T, name string, v reflect.Value, n int) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	default:
		t.Fatalf("%s is a %s", name, v.Kind())
	}
}
