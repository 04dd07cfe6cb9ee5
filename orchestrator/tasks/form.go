package tasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vibedata/roundhouse/internal/payload"
)

// noReferences refuses to load other schemas, because a form is self-contained.
type noReferences struct{}

func (noReferences) Load(url string) (any, error) {
	return nil, errors.New("a form refers to no other document")
}

// compile compiles a form; nil for none.
func compile(form json.RawMessage) (*jsonschema.Schema, error) {
	if len(form) == 0 {
		return nil, nil
	}
	const name = "form:///form"
	c := jsonschema.NewCompiler()
	c.UseLoader(noReferences{})
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(form))
	if err == nil {
		err = c.AddResource(name, document)
	}
	var schema *jsonschema.Schema
	if err == nil {
		schema, err = c.Compile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the form is no JSON schema: %w", ErrInvalid, err)
	}
	return schema, nil
}

// checkAnswer checks an answer against the task's form.
func (t Task) checkAnswer(output json.RawMessage) error {
	if len(output) > MaxOutput {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrOutput, len(output), MaxOutput)
	}
	if err := payload.Check(output); err != nil {
		return fmt.Errorf("%w: %w", ErrOutput, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(output))
	if err != nil {
		return fmt.Errorf("%w: it is not JSON: %w", ErrOutput, err)
	}
	schema, err := compile(t.Form)
	if err != nil || schema == nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%w: the task's form does not allow it: %.1000s", ErrOutput, err.Error())
	}
	return nil
}
