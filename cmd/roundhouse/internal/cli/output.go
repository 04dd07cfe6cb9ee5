package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// printJSON writes data unchanged, indented.
func (a *app) printJSON(data json.RawMessage) error {
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return fmt.Errorf("the answer is no JSON: %w", err)
	}
	_, err := fmt.Fprintln(a.Stdout, escapeUnprintable(out.String()))
	return err
}

// printValue writes a value of this program as JSON.
func (a *app) printValue(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.printJSON(data)
}

// printDetail writes one object, member by member in the order of the API, or as JSON.
func (a *app) printDetail(data json.RawMessage) error {
	if a.asJSON() {
		return a.printJSON(data)
	}
	members, err := membersOf(data)
	if err != nil {
		return err
	}
	width := 0
	for _, m := range members {
		width = max(width, len(m.name))
	}
	for _, m := range members {
		// A document continues below its name.
		text := strings.ReplaceAll(block(m.text), "\n", "\n"+strings.Repeat(" ", gap))
		if _, err := fmt.Fprintln(a.Stdout, strings.TrimRight(pad(printable(m.name), width+gap)+text, " ")); err != nil {
			return err
		}
	}
	return nil
}

// member is a member of a JSON object, with its value in readable form.
type member struct{ name, text string }

// membersOf splits an object into its members, in their order.
func membersOf(data json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return []member{{"value", string(data)}}, nil
	}
	var members []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		members = append(members, member{fmt.Sprint(name), readable(value)})
	}
	if _, err := d.Token(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return members, nil
}

// readable returns a JSON value for display: a string without its quotes, a document with one line for each member.
func readable(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var out bytes.Buffer
	if len(value) > 40 && json.Indent(&out, value, "", "  ") == nil {
		return out.String()
	}
	return string(value)
}

// note writes a message that is no data.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.Stderr, block(fmt.Sprintf(format, args...)))
}
