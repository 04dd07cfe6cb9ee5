package localhost

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// applyOutputs writes an invocation's values for its queue bindings, and returns that of its http binding (nil for
// none). It ignores values without a binding, and nulls.
func applyOutputs(ctx context.Context, f *function, r result, store queues.Store) (httpValue json.RawMessage, err error) {
	outputs := r.Outputs
	returns := false
	for _, b := range f.outputs {
		returns = returns || b.Name == "$return"
	}
	// Without a binding for the return value, the members of a returned object are outputs.
	var members map[string]json.RawMessage
	if !returns && json.Unmarshal(r.ReturnValue, &members) == nil && len(members) > 0 {
		outputs = members
	}
	for _, b := range f.outputs {
		value := outputs[b.Name]
		if b.Name == "$return" {
			value = r.ReturnValue
		}
		if len(value) == 0 || string(value) == "null" {
			continue
		}
		if b.Type == httpOutput {
			httpValue = value
			continue
		}
		if err := sendOutput(ctx, store, b, value); err != nil {
			return nil, fmt.Errorf("function %s: output %s to queue %s: %w", f.name, b.Name, b.QueueName, err)
		}
	}
	return httpValue, nil
}

// sendOutput sends one message for a text or an object and one for each element of an array.
func sendOutput(ctx context.Context, store queues.Store, b binding, value json.RawMessage) error {
	if store == nil {
		return errNoQueues
	}
	elements := []json.RawMessage{value}
	if text, ok := jsonText(value); ok && strings.HasPrefix(strings.TrimSpace(text), "[") && json.Valid([]byte(text)) {
		value = json.RawMessage(text)
	}
	if bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) {
		if err := json.Unmarshal(value, &elements); err != nil {
			return fmt.Errorf("read the array: %w", err)
		}
	}
	if err := store.CreateQueue(ctx, b.QueueName); err != nil {
		return err
	}
	for _, element := range elements {
		if _, err := store.Send(ctx, b.QueueName, outputBody(b, element), time.Duration(0)); err != nil {
			return err
		}
	}
	return nil
}

// outputBody returns the message for a value: text that happens to be base64 is decoded unless the binding is binary,
// and objects are indented.
func outputBody(b binding, value json.RawMessage) []byte {
	text, ok := jsonText(value)
	if !ok {
		return indented(value)
	}
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && b.DataType != "binary" && len(decoded) > 0 {
		return decoded
	}
	if looksLikeObject(text) {
		return indented(json.RawMessage(text))
	}
	return []byte(text)
}

func looksLikeObject(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text))
}

func indented(value json.RawMessage) []byte {
	var buffer bytes.Buffer
	if err := json.Indent(&buffer, value, "", "  "); err != nil {
		return value // unreachable: the value is valid JSON
	}
	return buffer.Bytes()
}

// jsonText returns the text of a JSON string; false for any other value.
func jsonText(value json.RawMessage) (string, bool) {
	var text string
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte(`"`)) || json.Unmarshal(value, &text) != nil {
		return "", false
	}
	return text, true
}
