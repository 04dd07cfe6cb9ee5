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
	// shortText is the longest text that gets a field of one line.
	shortText = 120
)

// The keywords of schemas and properties for which a form can be made. A form does not support others.
var (
	formKeywords  = []string{"$schema", "$id", "$comment", "type", "title", "description", "properties", "required", "additionalProperties"}
	fieldKeywords = []string{"$comment", "type", "title", "description", "enum", "default", "examples", "format", "pattern", "minLength", "maxLength",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)

// documentEntry is the input of a document: in fields, or as JSON.
type documentEntry struct {
	// Noun is the kind of document, such as "answer", and Name the name of the JSON field in the form.
	Noun, Name string
	// Required means that a document is required, and Off that none can be entered.
	Required, Off bool
	Fields        []formField
	// Text is the text of the document, without fields, and Schema its schema, "" for none.
	Text   string
	Schema Payload
	// Other is the address of the other input form, "" for none.
	Other string
}

// entryOf returns an empty one for a schema; fieldsAt and jsonAt are the addresses of the two input forms.
func entryOf(noun string, schema json.RawMessage, asJSON bool, fieldsAt, jsonAt string) *documentEntry {
	e := &documentEntry{Noun: noun, Name: noun, Schema: payloadOf(string(schema))}
	fields, ok := fieldsOf(schema)
	switch {
	case ok && asJSON:
		e.Other = fieldsAt
	case ok:
		e.Fields, e.Other = fields, jsonAt
	}
	return e
}

// Title returns the noun with a capital.
func (e *documentEntry) Title() string { return strings.ToUpper(e.Noun[:1]) + e.Noun[1:] }

// enter stores the values of a form in it.
func (e *documentEntry) enter(form url.Values) {
	enter(e.Fields, form)
	e.Text = form.Get(e.Name)
}

// document returns the entered document, nil for none, or its error.
func (e *documentEntry) document() (json.RawMessage, Text) {
	switch {
	case e.Fields == nil && e.Text == "" && !e.Required:
		return nil, ""
	case e.Fields == nil && !json.Valid([]byte(e.Text)):
		return nil, Text("The " + e.Noun + " is not JSON. A text is in quotation marks, as in \"yes\".")
	case e.Fields == nil:
		return json.RawMessage(e.Text), ""
	}
	document, ok := documentOf(e.Fields)
	if !ok {
		return nil, Text("Something in the " + e.Noun + " is not as it has to be: see below.")
	}
	return document, ""
}

// formField is a field of a form that is made from a JSON schema.
type formField struct {
	// Input is its name in the form, which is independent of the schema.
	Input              string
	Label, Description Text
	Required           bool
	// Kind is one of line, text, number and choice.
	Kind    string
	Choices []fieldChoice
	// Value is the input: for a choice, its number.
	Value string
	// Problem is its error, "" for none.
	Problem Text

	name   string
	number bool
}

// fieldChoice is a possible value.
type fieldChoice struct {
	Index string
	Label Text

	value json.RawMessage
}

// fieldSchema is the schema of a property.
type fieldSchema struct {
	Type        string            `json:"type"`
	Title       Text              `json:"title"`
	Description Text              `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Default     json.RawMessage   `json:"default"`
	MaxLength   int               `json:"maxLength"`
	Format      string            `json:"format"`
}

// fieldsOf makes a form from a schema: an object of texts, numbers, truth values and choices. Other schemas have none.
func fieldsOf(schema json.RawMessage) (fields []formField, ok bool) {
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
func fieldOf(schema json.RawMessage) (f formField, ok bool) {
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
		f.Choices = []fieldChoice{{"0", "yes", json.RawMessage("true")}, {"1", "no", json.RawMessage("false")}}
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
		c := fieldChoice{Index: strconv.Itoa(n), Label: scalar(value), value: value}
		if bytes.HasPrefix(value, []byte("{")) || bytes.HasPrefix(value, []byte("[")) {
			return f, false
		}
		f.Choices = append(f.Choices, c)
	}
	f.setDefault(s.Default)
	return f, true
}

// setDefault enters the schema's default, if it has no invisible characters.
func (f *formField) setDefault(value json.RawMessage) {
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

// scalar returns a displayed JSON value.
func scalar(value json.RawMessage) Text {
	var text string
	if json.Unmarshal(value, &text) == nil && bytes.HasPrefix(value, []byte(`"`)) {
		return Text(text)
	}
	return Text(value)
}

// says reports whether a document is an object with only these keywords.
func says(object json.RawMessage, keywords []string) bool {
	names, _ := members(object)
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(keywords, name) })
}

// members returns those of an object, their names in its order; none of other values.
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

// enter stores the values of a form in the fields.
func enter(fields []formField, form url.Values) {
	for n, f := range fields {
		fields[n].Value = lines(form.Get(f.Input))
	}
}

// lines returns a text of a form with the line breaks of documents.
func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// documentOf makes the document of the input: empty values are omitted, numbers stay as written. It records the errors
// at the fields, and reports whether none occurred.
func documentOf(fields []formField) (json.RawMessage, bool) {
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
		name, _ := json.Marshal(f.name) // a text can always be encoded
		fmt.Fprintf(&out, "%s:%s", name, value)
	}
	out.WriteByte('}')
	return out.Bytes(), good
}

// json returns the value of the field, or its error.
func (f formField) json() (value json.RawMessage, problem Text) {
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
		value, _ = json.Marshal(f.Value) // a text can always be encoded
		return value, ""
	}
}

// numeric reports whether a text is a JSON number.
func numeric(text string) bool {
	return json.Valid([]byte(text)) && strings.ContainsAny(text[:1], "-0123456789")
}
