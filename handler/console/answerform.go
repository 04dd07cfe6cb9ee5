package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxFields bounds the fields of a form that is made from a schema.
	maxFields = 40
	// shortText is up to which length a text gets a field of one line.
	shortText = 120
)

// These are what a schema and its properties may say for a form to be made of it. What else they could say, a form does not show.
var (
	formKeywords  = []string{"$schema", "$id", "$comment", "type", "title", "description", "properties", "required", "additionalProperties"}
	fieldKeywords = []string{"$comment", "type", "title", "description", "enum", "default", "examples", "format", "pattern", "minLength", "maxLength",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)

// answerField is a field of a form that is made from a JSON schema.
type answerField struct {
	// Input is its name in the form, which has nothing of the schema.
	Input              string
	Label, Description Text
	Required           bool
	// Kind is one of line, text, number and choice.
	Kind    string
	Choices []answerChoice
	// Value is what was entered: for a choice, its number.
	Value string
	// Problem is what is wrong with it, "" for nothing.
	Problem Text

	name   string
	number bool
}

// answerChoice is a value that can be chosen.
type answerChoice struct {
	Index string
	Label Text

	value json.RawMessage
}

// fieldSchema is what a property says of itself.
type fieldSchema struct {
	Type        string            `json:"type"`
	Title       Text              `json:"title"`
	Description Text              `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Default     json.RawMessage   `json:"default"`
	MaxLength   int               `json:"maxLength"`
	Format      string            `json:"format"`
}

// fieldsOf makes a form from the schema of an answer: an object of texts, numbers, truth values and choices. Of other schemas it
// makes none.
func fieldsOf(schema json.RawMessage) (fields []answerField, ok bool) {
	var s struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if !says(schema, formKeywords) || json.Unmarshal(schema, &s) != nil || s.Type != "object" {
		return nil, false
	}
	names, properties := members(s.Properties)
	if len(names) == 0 || len(names) > maxFields {
		return nil, false
	}
	for n, name := range names {
		f, ok := fieldOf(properties[name])
		if !ok {
			return nil, false
		}
		f.name, f.Input, f.Required = name, "f"+strconv.Itoa(n), slices.Contains(s.Required, name)
		if f.Label == "" {
			f.Label = Text(name)
		}
		fields = append(fields, f)
	}
	for _, name := range s.Required {
		if properties[name] == nil {
			return nil, false
		}
	}
	return fields, true
}

// fieldOf makes a field of a property.
func fieldOf(schema json.RawMessage) (f answerField, ok bool) {
	var s fieldSchema
	if !says(schema, fieldKeywords) || json.Unmarshal(schema, &s) != nil {
		return f, false
	}
	f.Label, f.Description = s.Title, s.Description
	switch {
	case len(s.Enum) > 0:
		f.Kind = "choice"
	case s.Type == "boolean":
		f.Kind = "choice"
		f.Choices = []answerChoice{{"0", "yes", json.RawMessage("true")}, {"1", "no", json.RawMessage("false")}}
	case s.Type == "number" || s.Type == "integer":
		f.Kind, f.number = "number", true
	case s.Type == "string" && (s.Format != "" || s.MaxLength > 0 && s.MaxLength <= shortText):
		f.Kind = "line"
	case s.Type == "string":
		f.Kind = "text"
	default:
		return f, false
	}
	for n, value := range s.Enum {
		c := answerChoice{Index: strconv.Itoa(n), Label: scalar(value), value: value}
		if bytes.HasPrefix(value, []byte("{")) || bytes.HasPrefix(value, []byte("[")) {
			return f, false
		}
		f.Choices = append(f.Choices, c)
	}
	f.setDefault(s.Default)
	return f, true
}

// setDefault enters what the schema proposes, if it can be seen as it is.
func (f *answerField) setDefault(value json.RawMessage) {
	text := scalar(value)
	switch {
	case len(value) == 0 || text.String() != string(text):
	case f.Kind == "choice":
		for _, c := range f.Choices {
			if bytes.Equal(c.value, value) {
				f.Value = c.Index
			}
		}
	case f.number && numeric(string(value)), !f.number && value[0] == '"':
		f.Value = string(text)
	}
}

// scalar is a value of JSON as people read it.
func scalar(value json.RawMessage) Text {
	var text string
	if json.Unmarshal(value, &text) == nil && bytes.HasPrefix(value, []byte(`"`)) {
		return Text(text)
	}
	return Text(value)
}

// says reports whether a document is an object that has nothing besides some keywords.
func says(object json.RawMessage, keywords []string) bool {
	names, _ := members(object)
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(keywords, name) })
}

// members are those of an object, their names in its order; none of what is no object.
func members(object json.RawMessage) (names []string, values map[string]json.RawMessage) {
	values = map[string]json.RawMessage{}
	if json.Unmarshal(object, &values) != nil {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil { // unreachable: it has just been read
		return nil, nil
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		text, isText := name.(string)
		if err != nil || !isText {
			return nil, nil
		}
		if !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return names, values
}

// enter puts into the fields what a form has sent.
func enter(fields []answerField, form url.Values) {
	for n, f := range fields {
		fields[n].Value = lines(form.Get(f.Input))
	}
}

// lines is a text of a form with the line breaks that documents have.
func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// answerOf makes the answer of what was entered: what was left empty is left out, numbers stay as they were written. It notes at the
// fields what is wrong, and says whether nothing is.
func answerOf(fields []answerField) (json.RawMessage, bool) {
	var out bytes.Buffer
	good := true
	out.WriteByte('{')
	for n, f := range fields {
		if f.Value == "" {
			continue
		}
		value, problem := f.json()
		if problem != "" {
			fields[n].Problem, good = problem, false
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		name, _ := json.Marshal(f.name) // a text can always be written
		fmt.Fprintf(&out, "%s:%s", name, value)
	}
	out.WriteByte('}')
	return out.Bytes(), good
}

// json is the value of the field, or what is wrong with it.
func (f answerField) json() (value json.RawMessage, problem Text) {
	switch {
	case f.Kind == "choice":
		for _, c := range f.Choices {
			if c.Index == f.Value {
				return c.value, ""
			}
		}
		return nil, "Choose one of the values."
	case f.number:
		text := strings.TrimSpace(f.Value)
		if !numeric(text) {
			return nil, "Use a number such as 7 or 1.5."
		}
		return json.RawMessage(text), ""
	default:
		value, _ = json.Marshal(f.Value) // a text can always be written
		return value, ""
	}
}

// numeric says whether a text is a number of JSON.
func numeric(text string) bool {
	return json.Valid([]byte(text)) && strings.ContainsAny(text[:1], "-0123456789")
}
