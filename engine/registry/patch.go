package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// FieldError is an error in one field of an operator's document. It is an ErrInvalid.
type FieldError struct {
	Field string
	// Reason is a sentence with the remedy.
	Reason string
}

// Error names the field.
func (e *FieldError) Error() string { return "field " + e.Field + ": " + e.Reason }

// Is makes it an ErrInvalid.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// EngineFields returns the fields of documents that engines write, with the engine. Operators cannot set them: a run
// would take such a value for its own.
func EngineFields() map[string]string {
	return map[string]string{
		"version": "update", "components": "update", "pendingUpdate": "update", "desired": "update",
		"health": "health", "provisioning": "provisioning", "lastUpdate": "update-publisher",
	}
}

// The bounds of operators' fields.
const (
	maxFieldName = 128
	maxTenant    = 256
)

// Patch changes the operators' fields of a document by a JSON merge patch (RFC 7396): the tenant, the ring, the
// endpoints, the engineTablesConfig, and unknown fields. An error leaves the document unchanged; it joins a
// *FieldError for every invalid field.
func (i *Instance) Patch(patch json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(patch, &members); err != nil || members == nil {
		return &FieldError{"", "Use a JSON object with the fields that are to change; null takes a field away."}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if reason := refusedField(name); reason != "" {
			errs = append(errs, &FieldError{name, reason})
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	before, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encode instance %s: %w: %w", i.InstanceID, ErrDamaged, err)
	}
	document := map[string]any{}
	if err := exactly(before, &document); err != nil {
		return fmt.Errorf("instance %s: %w: %w", i.InstanceID, ErrDamaged, err)
	}
	changes := map[string]any{}
	if err := exactly(patch, &changes); err != nil {
		return &FieldError{"", "Use one JSON object."}
	}
	if reason := refusedTables(document[fieldTables], changes[fieldTables]); reason != "" {
		return &FieldError{fieldTables, reason}
	}
	text, err := json.Marshal(merged(document, changes))
	if err != nil {
		return fmt.Errorf("encode instance %s: %w: %w", i.InstanceID, ErrInvalid, err)
	}
	return i.become(text, members)
}

// become adopts a document whose named members have changed, if they are valid.
func (i *Instance) become(text []byte, members map[string]json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("instance %s: %w: %w", i.InstanceID, ErrInvalid, err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(members)) {
		raw, there := fields[name]
		if !there {
			continue
		}
		if reason := checkField(name, raw); reason != "" {
			errs = append(errs, &FieldError{name, reason})
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	var after Instance
	if err := json.Unmarshal(text, &after); err != nil {
		return fmt.Errorf("instance %s: %w: %w", i.InstanceID, ErrInvalid, err)
	}
	after.InstanceID, after.Lock, after.Version = i.InstanceID, i.Lock, i.Version
	*i = after
	return nil
}

// exactly decodes JSON without converting its numbers to floats.
func exactly(text []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	return d.Decode(into)
}

// merged returns the merge patch of RFC 7396 for two objects.
func merged(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for name, v := range patch {
		switch inner, isObject := v.(map[string]any); {
		case v == nil:
			delete(target, name)
		case isObject:
			before, _ := target[name].(map[string]any)
			target[name] = merged(before, inner)
		default:
			target[name] = v
		}
	}
	return target
}

// refusedField returns the reason why operators cannot set a field, "" when they can.
func refusedField(name string) string {
	for own, engine := range EngineFields() {
		if strings.EqualFold(own, name) {
			return "The engine " + engine + " writes this field; leave it out."
		}
	}
	switch {
	case strings.EqualFold(name, fieldInstance):
		return "The id of an instance does not change: register another, and remove this one."
	case strings.EqualFold(name, fieldLock):
		return "The lock is not written: drain the instance, or resume it."
	case strings.EqualFold(name, fieldVersion):
		return "The registry counts the versions; say in If-Match which one the change is for."
	case name == "" || len(name) > maxFieldName || !utf8.ValidString(name):
		return fmt.Sprintf("Names of fields have 1 to %d bytes of UTF-8.", maxFieldName)
	}
	for _, own := range append(known(), FieldRing, FieldEndpoints) {
		if own != name && strings.EqualFold(own, name) {
			return "Write it " + own + "."
		}
	}
	return ""
}

// refusedTables returns why a change of engineTablesConfig is invalid, "" if it is valid. An unknown member is a mistake, unless the
// document has it already or the change removes it. Zero days are not the same as no setting.
func refusedTables(document, change any) string {
	before, _ := document.(map[string]any)
	members, _ := change.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, there := before[name]; !there && members[name] != nil && !slices.Contains(tablesConfigFields(), name) {
			return fmt.Sprintf("It has no %.80q: use %s.", name, strings.Join(tablesConfigFields(), ", "))
		}
	}
	if n, given := members["retentionDays"].(json.Number); given && zeroNumber(n) {
		return fmt.Sprintf("RetentionDays is 0: use %d to %d days, or null for what the app says.", MinRetentionDays, MaxRetentionDays)
	}
	return ""
}

func zeroNumber(n json.Number) bool {
	f, err := n.Float64()
	return err == nil && f == 0
}

// checkField returns the error in a changed field, "" for none.
func checkField(name string, raw json.RawMessage) string {
	switch name {
	case FieldRing:
		return checkRing(raw)
	case FieldEndpoints:
		return checkEndpoints(raw)
	case fieldTenant:
		var tenant string
		if json.Unmarshal(raw, &tenant) != nil || tenant == "" || len(tenant) > maxTenant {
			return fmt.Sprintf("Use the id of a tenant, of 1 to %d bytes, or null for none.", maxTenant)
		}
	case fieldTables:
		var c EngineTablesConfig
		if json.Unmarshal(raw, &c) != nil {
			return `Use an object such as {"retentionDays": 30, "retention": {"health": 7}}.`
		}
		if err := c.Validate(); err != nil {
			return sentence(strings.TrimPrefix(err.Error(), "engineTablesConfig: "+ErrInvalid.Error()+": "))
		}
	}
	return ""
}

// sentence converts a text to a sentence.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }
