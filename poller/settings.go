package poller

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/ncrontab"
	"github.com/vibedata/roundhouse/internal/payload"
)

// MaxPollers is the most pollers in the settings.
const MaxPollers = 200

// Setting is the definition of a poller in the settings. docs/pollers.md describes the document.
type Setting struct {
	// Name is the name of the poller: the name of the member in the document.
	Name string
	// Schedule is its schedule, as NCRONTAB with seconds; the default is DefaultSchedule.
	Schedule string
	// Connection names the holder of the database's connection string. The document never holds it.
	Connection Connection
	// Source is the definition of the source, for the package that reads this kind of source.
	Source json.RawMessage
	// State is the store of the state document: StateBlob or StateTable.
	State string
	// Exactly one of Engine and Outbox is set: the target of rows.
	Engine *EngineTarget
	Outbox *OutboxTarget
	// NoQuarantine makes a row that the handler rejects block the poller, instead of going to the dead letters.
	NoQuarantine bool
	Options      Options
}

// DefaultSchedule is every ten seconds.
const DefaultSchedule = "*/10 * * * * *"

// Function returns the name of the poller's timer function.
func (s Setting) Function() string { return "poller-" + s.Name + "-timer" }

// The stores of state documents.
const (
	StateBlob  = "blob"
	StateTable = "table"
)

// Connection names the holder of a connection string: exactly one of a setting of the program and a secret in its
// vault.
type Connection struct {
	Setting string `json:"setting"`
	Secret  string `json:"secret"`
}

// EngineTarget sends each row as a message to an engine.
type EngineTarget struct {
	Engine    string `json:"engine"`
	Operation string `json:"operation"`
	// InstanceColumn and TenantColumn name columns of the row; when they are "", Instance and Tenant apply.
	InstanceColumn string `json:"instanceColumn"`
	TenantColumn   string `json:"tenantColumn"`
	// InputColumn names the column with the engine's input as JSON; NULL is no input. When it is "", the input is the row.
	InputColumn string `json:"inputColumn"`
	Instance    string `json:"instanceId"`
	Tenant      string `json:"tenantId"`
}

// OutboxTarget adds each row as an event to the outbox.
type OutboxTarget struct {
	EventType string `json:"eventType"`
	// TenantColumn names a column of the row; when it is "", Tenant is the tenant of all rows.
	TenantColumn string `json:"tenantColumn"`
	Tenant       string `json:"tenantId"`
	// Ordered keeps the events of one key in order.
	Ordered bool `json:"ordered"`
}

// settingDocument is the JSON of a poller in the settings.
type settingDocument struct {
	Schedule   string          `json:"schedule"`
	Connection Connection      `json:"connection"`
	Source     json.RawMessage `json:"source"`
	State      string          `json:"state"`
	Deliver    struct {
		Engine *EngineTarget `json:"engine"`
		Outbox *OutboxTarget `json:"outbox"`
	} `json:"deliver"`
	LeaseTTL duration `json:"leaseTtl"`
	Budget   duration `json:"budget"`
	Batch    struct {
		First  int      `json:"first"`
		Least  int      `json:"least"`
		Most   int      `json:"most"`
		Bytes  int      `json:"bytes"`
		Target duration `json:"handlerTarget"`
	} `json:"batch"`
	Retry struct {
		Attempts int      `json:"attempts"`
		Delay    duration `json:"delay"`
		MaxDelay duration `json:"maxDelay"`
	} `json:"retry"`
	Quarantine struct {
		Off    bool    `json:"off"`
		Share  float64 `json:"share"`
		Window int     `json:"window"`
		Free   int     `json:"free"`
	} `json:"quarantine"`
	IdleHeartbeat duration `json:"idleHeartbeat"`
	Backfill      bool     `json:"backfill"`
	RowsPerSecond int      `json:"rowsPerSecond"`
}

// duration is written as in Go, such as 2m.
type duration time.Duration

// UnmarshalText parses a duration of more than 0.
func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed <= 0 {
		return fmt.Errorf("%.32q is no Go duration of more than 0, such as 2m", text)
	}
	*d = duration(parsed)
	return nil
}

// ParseSettings decodes the JSON document of pollers, an object with one member for each poller, in the order of their
// names. "" is none. The error names all errors, one per line, with the poller; the errors are ErrInvalid.
func ParseSettings(text string) ([]Setting, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if err := payload.Check([]byte(text)); err != nil {
		return nil, fmt.Errorf("%w: the document of pollers is %w", ErrInvalid, err)
	}
	var all map[string]json.RawMessage
	if err := decodeStrict([]byte(text), &all); err != nil {
		return nil, fmt.Errorf(`%w: it is no document {"name": {...}} as docs/pollers.md describes it: %w`, ErrInvalid, err)
	}
	if len(all) > MaxPollers {
		return nil, fmt.Errorf("%w: %d pollers, %d are allowed", ErrInvalid, len(all), MaxPollers)
	}
	var out []Setting
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s, err := parseSetting(name, all[name])
		out = append(out, s)
		for line := range flattenErrors(err) {
			errs = append(errs, fmt.Errorf("poller %.64q: %w", name, line))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// flattenErrors iterates over joined errors.
func flattenErrors(err error) func(func(error) bool) {
	return func(yield func(error) bool) {
		if err == nil {
			return
		}
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || strings.Count(err.Error(), "\n") == 0 {
			yield(err)
			return
		}
		for _, e := range joined.Unwrap() {
			for line := range flattenErrors(e) {
				if !yield(line) {
					return
				}
			}
		}
	}
}

// decodeStrict decodes one JSON value without unknown members.
func decodeStrict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.More() {
		err = errors.New("there is more behind it")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	return err
}

func parseSetting(name string, text json.RawMessage) (Setting, error) {
	var d settingDocument
	if err := decodeStrict(text, &d); err != nil {
		return Setting{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s := Setting{Name: name, Schedule: cmp.Or(d.Schedule, DefaultSchedule), Connection: d.Connection, Source: d.Source, State: d.State, Engine: d.Deliver.Engine, Outbox: d.Deliver.Outbox,
		NoQuarantine: d.Quarantine.Off, Options: d.options()}
	if s.State == "" {
		s.State = StateBlob
	}
	return s, s.Validate()
}

func (d settingDocument) options() Options {
	return Options{
		LeaseTTL: time.Duration(d.LeaseTTL), Budget: time.Duration(d.Budget),
		BatchSize: d.Batch.First, MinBatch: d.Batch.Least, MaxBatch: d.Batch.Most, MaxBytes: d.Batch.Bytes, HandlerTarget: time.Duration(d.Batch.Target),
		MaxAttempts: d.Retry.Attempts, RetryDelay: time.Duration(d.Retry.Delay), MaxRetryDelay: time.Duration(d.Retry.MaxDelay),
		QuarantineShare: d.Quarantine.Share, QuarantineWindow: d.Quarantine.Window, QuarantineFree: d.Quarantine.Free,
		IdleHeartbeat: time.Duration(d.IdleHeartbeat), Backfill: d.Backfill, RowsPerSecond: d.RowsPerSecond,
	}
}

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Validate returns the errors of a setting, without its source. The errors are ErrInvalid.
func (s Setting) Validate() error {
	errs := []error{CheckName(s.Name), s.Connection.validate(), checkSource(s.Source), s.Options.Validate()}
	if s.Schedule != "" {
		errs = append(errs, checkSchedule(s.Schedule))
	}
	if s.State != StateBlob && s.State != StateTable {
		errs = append(errs, fmt.Errorf("%w: state is %.32q: set %s or %s", ErrInvalid, s.State, StateBlob, StateTable))
	}
	switch {
	case (s.Engine == nil) == (s.Outbox == nil):
		errs = append(errs, fmt.Errorf("%w: deliver: set exactly one of engine and outbox", ErrInvalid))
	case s.Engine != nil && s.Engine.Engine == "":
		errs = append(errs, fmt.Errorf("%w: deliver.engine.engine is not set: name the engine that takes the rows", ErrInvalid))
	case s.Outbox != nil && s.Outbox.EventType == "":
		errs = append(errs, fmt.Errorf("%w: deliver.outbox.eventType is not set", ErrInvalid))
	case s.Outbox != nil && (s.Outbox.Tenant == "") == (s.Outbox.TenantColumn == ""):
		errs = append(errs, fmt.Errorf("%w: deliver.outbox: set exactly one of tenantId and tenantColumn", ErrInvalid))
	}
	return errors.Join(errs...)
}

// checkSchedule returns an error unless the Functions host can run a timer by a schedule.
func checkSchedule(schedule string) error {
	_, err := ncrontab.Parse(schedule)
	if n := len(strings.Fields(schedule)); n != 6 || err != nil {
		if err == nil {
			err = fmt.Errorf("it has %d fields", n)
		}
		return fmt.Errorf("%w: schedule is %.64q: set six fields as the Functions host reads them, as in %q: %w", ErrInvalid, schedule, DefaultSchedule, err)
	}
	return nil
}

func (c Connection) validate() error {
	switch {
	case (c.Setting == "") == (c.Secret == ""):
		return fmt.Errorf("%w: connection: set exactly one of setting and secret", ErrInvalid)
	case c.Setting != "" && !settingName.MatchString(c.Setting):
		// The value is not quoted: it may be the connection string itself.
		return fmt.Errorf("%w: connection.setting is no name of a setting: name the one that holds the connection string", ErrInvalid)
	case c.Secret != "" && !secretName.MatchString(c.Secret):
		return fmt.Errorf("%w: connection.secret is no name of a secret: name the one that holds the connection string", ErrInvalid)
	}
	return nil
}

var secretName = regexp.MustCompile(`^[0-9a-zA-Z-]{1,127}$`)

// checkSource rejects a missing source, and one that holds a credential.
func checkSource(source json.RawMessage) error {
	var members map[string]json.RawMessage
	if len(source) == 0 || json.Unmarshal(source, &members) != nil || len(members) == 0 {
		return fmt.Errorf("%w: source is not set: describe the table, see docs/pollers.md", ErrInvalid)
	}
	for name := range members {
		switch strings.ToLower(name) {
		case "dsn", "password", "connectionstring", "url":
			return fmt.Errorf("%w: source.%s: a connection string does not belong here: name where it is in connection", ErrInvalid, name)
		}
	}
	return nil
}
