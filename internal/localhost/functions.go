package localhost

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/internal/jsonc"
)

// Binding types that the local host knows.
const (
	queueTrigger  = "queueTrigger"
	timerTrigger  = "timerTrigger"
	httpTrigger   = "httpTrigger"
	manualTrigger = "manualTrigger"
	queueOutput   = "queue"
	httpOutput    = "http"
)

// binding is one entry of function.json; its type decides which members apply.
type binding struct {
	Type         string   `json:"type"`
	Name         string   `json:"name"`
	Direction    string   `json:"direction"`
	DataType     string   `json:"dataType"`
	QueueName    string   `json:"queueName"`
	Schedule     string   `json:"schedule"`
	RunOnStartup bool     `json:"runOnStartup"`
	UseMonitor   *bool    `json:"useMonitor"`
	AuthLevel    string   `json:"authLevel"`
	Methods      []string `json:"methods"`
	Route        *string  `json:"route"`
}

// function is one folder of the script root. One that cannot run has the error; the others are not affected.
type function struct {
	name     string
	config   json.RawMessage // function.json as it is
	trigger  binding
	outputs  []binding
	disabled bool
	err      error
}

func (f *function) runnable() bool { return f.err == nil && !f.disabled }

// plainHTTP reports whether requests are passed on as they are: one http trigger in and one http binding out.
func (f *function) plainHTTP() bool {
	return f.trigger.Type == httpTrigger && len(f.outputs) == 1 && f.outputs[0].Type == httpOutput
}

var functionName = regexp.MustCompile(`^(?i)[a-z][a-z0-9_\-]{0,127}$`)

// discover finds the functions: direct children of root with a function.json, sorted by name.
func discover(root string, env environment) ([]*function, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("list functions: %w", err)
	}
	var found []*function
	seen := map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		data, err := os.ReadFile(filepath.Join(root, name, "function.json"))
		if err != nil {
			continue // not a function
		}
		f := &function{name: name, config: json.RawMessage("{}")}
		if first, ok := seen[strings.ToLower(name)]; ok {
			f.err = fmt.Errorf("function %s: function %s has the same name", name, first)
		} else if err := f.load(data, env); err != nil {
			f.err = fmt.Errorf("function %s: %w", name, err)
		}
		seen[strings.ToLower(name)] = name
		found = append(found, f)
	}
	return found, nil
}

// load decodes and checks a function.json.
func (f *function) load(data []byte, env environment) error {
	if !functionName.MatchString(f.name) || strings.EqualFold(f.name, "host") {
		return errors.New("a name starts with a letter, goes on with letters, digits, _ and -, has at most 128 characters and is not host")
	}
	data = jsonc.Standard(data)
	if !json.Valid(data) {
		return errors.New("function.json is not valid JSON")
	}
	f.config = data
	var file struct {
		Bindings []binding       `json:"bindings"`
		Disabled any             `json:"disabled"`
		Retry    json.RawMessage `json:"retry"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("parse function.json: %w", err)
	}
	f.disabled = f.switchedOff(file.Disabled, env)
	if len(file.Retry) > 0 && string(file.Retry) != "null" {
		return errors.New("retry policies are not supported by the local host")
	}
	for _, b := range file.Bindings {
		if err := f.add(b, env); err != nil {
			return fmt.Errorf("binding %q: %w", b.Name, err)
		}
	}
	if f.trigger.Type == "" {
		return errors.New("function.json has no trigger")
	}
	return nil
}

// switchedOff reads the two ways to disable a function: function.json (true, or the name of a setting) and the setting
// AzureWebJobs.<name>.Disabled.
func (f *function) switchedOff(disabled any, env environment) bool {
	if value, ok := env.setting("AzureWebJobs." + f.name + ".Disabled"); ok {
		return truthy(value)
	}
	switch v := disabled.(type) {
	case bool:
		return v
	case string:
		value, _ := env.setting(strings.Trim(v, "%"))
		return truthy(value)
	default:
		return false
	}
}

func (f *function) add(b binding, env environment) error {
	for _, known := range []string{queueTrigger, timerTrigger, httpTrigger, manualTrigger, queueOutput, httpOutput} {
		if strings.EqualFold(b.Type, known) {
			b.Type = known
		}
	}
	b.DataType = strings.ToLower(b.DataType)
	if b.Name == "" {
		return errors.New("a name is required")
	}
	switch b.Type {
	case queueTrigger, timerTrigger, httpTrigger, manualTrigger:
		if f.trigger.Type != "" {
			return errors.New("a function has exactly one trigger")
		}
		err := b.check(env)
		f.trigger = b
		return err
	case queueOutput, httpOutput:
		if !strings.EqualFold(b.Direction, "out") {
			return fmt.Errorf("type %s has direction \"out\"", b.Type)
		}
		err := b.check(env)
		f.outputs = append(f.outputs, b)
		return err
	default:
		return fmt.Errorf("type %q is not supported by the local host", b.Type)
	}
}

// check resolves settings in the binding's properties and validates them.
func (b *binding) check(env environment) error {
	if !slices.Contains([]string{"", "string", "binary"}, b.DataType) {
		return fmt.Errorf("dataType %q is not supported by the local host", b.DataType)
	}
	switch b.Type {
	case queueTrigger, queueOutput:
		name, err := env.resolve(b.QueueName)
		if err != nil {
			return err
		}
		b.QueueName = strings.ToLower(name)
		if !queueName.MatchString(b.QueueName) {
			return fmt.Errorf("queueName %q: a queue has 3 to 63 lower-case letters, digits and single dashes between them", name)
		}
	case timerTrigger:
		schedule, err := env.resolve(b.Schedule)
		if err != nil {
			return err
		}
		b.Schedule = schedule
		_, err = parseSchedule(schedule)
		return err
	case httpTrigger:
		if b.AuthLevel == "" {
			b.AuthLevel = authFunction
		}
		b.AuthLevel = strings.ToLower(b.AuthLevel)
		if !slices.Contains([]string{authAnonymous, authFunction, authAdmin}, b.AuthLevel) {
			return fmt.Errorf("authLevel %q is not supported by the local host", b.AuthLevel)
		}
	}
	return nil
}

var queueName = regexp.MustCompile(`^[a-z0-9](?:-?[a-z0-9]){2,62}$`)
