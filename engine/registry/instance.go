package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/internal/durations"
)

// DefaultLockDuration is the default duration of a lock (standard, section 1.8).
const DefaultLockDuration = time.Hour

// Instance is the document of a managed instance.
type Instance struct {
	InstanceID string
	TenantID   string
	// EngineTablesConfig is that of standard, section 6; nil when the document has none.
	EngineTablesConfig *EngineTablesConfig
	// Lock is the lock of the document; Acquire, Renew and Release change it.
	Lock Lock
	// Version counts the changes, from 1.
	Version int64

	fields map[string]json.RawMessage // as read or set, including the raw form of the fields above
}

// Lock is the document's instanceLock (standard, section 1.8).
type Lock struct {
	// JobID is the holder, "" for none.
	JobID string
	// Duration is the requested duration, in whole seconds.
	Duration time.Duration
	// Until is the expiry (UTC).
	Until time.Time
}

// Held reports whether the lock is valid: it has a holder, and it has not expired.
func (l Lock) Held(now time.Time) bool { return l.JobID != "" && now.Before(l.Until) }

type lockDocument struct {
	JobID   string `json:"lockJobId"`
	Seconds int64  `json:"lockDurationSeconds"`
	Until   string `json:"lockUntilUtc"`
}

// MarshalJSON writes the standard's form, in which a free lock has empty texts.
func (l Lock) MarshalJSON() ([]byte, error) {
	d := lockDocument{JobID: l.JobID, Seconds: int64(l.Duration / time.Second)}
	if !l.Until.IsZero() {
		d.Until = l.Until.UTC().Format(time.RFC3339Nano)
	}
	return json.Marshal(d)
}

// UnmarshalJSON reads the standard's form.
func (l *Lock) UnmarshalJSON(text []byte) error {
	var d lockDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return err
	}
	*l = Lock{JobID: d.JobID, Duration: durations.Times(d.Seconds, time.Second)}
	if d.Until == "" {
		return nil
	}
	until, err := time.Parse(time.RFC3339Nano, d.Until)
	l.Until = until.UTC()
	return err
}

// The fields of the document that this package knows.
const (
	fieldInstance = "instanceId"
	fieldTenant   = "tenantId"
	fieldTables   = "engineTablesConfig"
	fieldLock     = "instanceLock"
	fieldVersion  = "registryVersion"
)

func known() []string {
	return []string{fieldInstance, fieldTenant, fieldTables, fieldLock, fieldVersion}
}

// Field decodes a field of the document that this package does not know into v. false means that the field is
// missing, and v is unchanged.
func (i Instance) Field(name string, v any) (bool, error) {
	raw, ok := i.fields[name]
	if !ok || slices.Contains(known(), name) {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return true, fmt.Errorf("field %s of instance %s: %w", name, i.InstanceID, err)
	}
	return true, nil
}

// SetField sets a field of the document that this package does not know. nil removes it.
func (i *Instance) SetField(name string, v any) error {
	if name == "" || slices.Contains(known(), name) {
		return fmt.Errorf("field %q of instance %s is not to be set: %w", name, i.InstanceID, ErrInvalid)
	}
	if v == nil {
		delete(i.fields, name)
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("field %s of instance %s: %w: %w", name, i.InstanceID, ErrInvalid, err)
	}
	if i.fields == nil {
		i.fields = map[string]json.RawMessage{}
	}
	i.fields[name] = raw
	return nil
}

// Clone returns a copy that shares nothing with i.
func (i Instance) Clone() Instance {
	i.fields = maps.Clone(i.fields)
	if i.EngineTablesConfig != nil {
		c := *i.EngineTablesConfig
		c.Retention = maps.Clone(c.Retention)
		i.EngineTablesConfig = &c
	}
	return i
}

// MarshalJSON writes the document with all changes.
func (i Instance) MarshalJSON() ([]byte, error) {
	out := maps.Clone(i.fields)
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	parts := map[string]any{fieldInstance: i.InstanceID, fieldLock: i.Lock, fieldVersion: i.Version}
	if i.TenantID != "" {
		parts[fieldTenant] = i.TenantID
	} else {
		delete(out, fieldTenant)
	}
	if i.EngineTablesConfig != nil {
		parts[fieldTables] = i.EngineTablesConfig
	} else {
		delete(out, fieldTables)
	}
	for name, part := range parts {
		raw, err := overlay(out[name], part, tablesConfigFields())
		if err != nil {
			return nil, err
		}
		out[name] = raw
	}
	return json.Marshal(out)
}

// overlay returns v as JSON; if both are objects, with the additional fields of before. Fields of own that v omits
// are not taken from before.
func overlay(before json.RawMessage, v any, own []string) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var now, old map[string]json.RawMessage
	if json.Unmarshal(text, &now) != nil || (len(before) > 0 && json.Unmarshal(before, &old) != nil) {
		return text, nil // one of them is no object
	}
	for name, part := range old {
		if _, known := now[name]; !known && !slices.Contains(own, name) {
			now[name] = part
		}
	}
	return json.Marshal(now) // which sorts, so that the same document is always the same text
}

// UnmarshalJSON reads a document.
func (i *Instance) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	if fields == nil {
		return errors.New("the document is no JSON object")
	}
	*i = Instance{fields: fields}
	for name, v := range map[string]any{fieldInstance: &i.InstanceID, fieldTenant: &i.TenantID, fieldTables: &i.EngineTablesConfig,
		fieldLock: &i.Lock, fieldVersion: &i.Version} {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, v); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
	}
	return nil
}
