package audit

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/tables"
)

// Outcome is the result of an attempted change.
type Outcome string

// The outcomes. An entry without an end is Unknown: its process ended before it recorded one.
const (
	Unknown Outcome = "Unknown"
	Done    Outcome = "Done"
	Failed  Outcome = "Failed"
	Refused Outcome = "Refused"
)

// MaxText bounds each text of an entry, in bytes; longer texts are cut.
const MaxText = 4 << 10

// Entry is one change or attempted change.
type Entry struct {
	// ID identifies the entry, At is when it was written: UTC, in microseconds. Log sets both unless they are set.
	ID string
	At time.Time
	// Principal is the caller's id as made by access.Principal.ID. Name is its display name, and Kind the kind of
	// principal.
	Principal, Name, Kind string
	// Permission is the required permission, Action the operation, Target its object, such as "orchestrations/hmac-c1".
	// Door is the entry point: "api", "durable" or "cli".
	Permission, Action, Target, Door string
	// TenantID is the tenant of the target, "" for none.
	TenantID      string
	CorrelationID string
	// Reason is the reason that the principal gave, Before the state of the target before the change.
	Reason, Before string
	// Outcome, After (the new state of the target, or the reason of a failure) and EndedAt are those of the end.
	Outcome Outcome
	After   string
	EndedAt time.Time
}

// properties returns the columns of an entry, without its end.
func (e Entry) properties() map[string]any {
	p := map[string]any{"Id": e.ID, "AtUtc": e.At}
	for name, text := range map[string]string{"Principal": e.Principal, "Name": e.Name, "Kind": e.Kind, "Permission": e.Permission, "Action": e.Action,
		"Target": e.Target, "Door": e.Door, "TenantId": e.TenantID, "CorrelationId": e.CorrelationID, "Reason": e.Reason, "Before": e.Before} {
		if text != "" {
			p[name] = text
		}
	}
	return p
}

// ending returns the columns of its end.
func (e Entry) ending() map[string]any {
	return map[string]any{"Outcome": string(e.Outcome), "After": e.After, "EndedAtUtc": e.EndedAt}
}

// entryOf reads an entry, whose outcome is not known yet.
func entryOf(row tables.Entity) Entry {
	return Entry{ID: row.String("Id"), At: row.Time("AtUtc"), Principal: row.String("Principal"), Name: row.String("Name"), Kind: row.String("Kind"),
		Permission: row.String("Permission"), Action: row.String("Action"), Target: row.String("Target"), Door: row.String("Door"),
		TenantID: row.String("TenantId"), CorrelationID: row.String("CorrelationId"), Reason: row.String("Reason"), Before: row.String("Before"), Outcome: Unknown}
}

// end reads the end of an entry into it.
func (e *Entry) end(row tables.Entity) {
	e.Outcome, e.After, e.EndedAt = Outcome(row.String("Outcome")), row.String("After"), row.Time("EndedAtUtc")
}

// storable removes secrets and unsupported characters from the texts of an entry, and cuts them.
func (e Entry) storable() Entry {
	for _, text := range []*string{&e.Principal, &e.Kind, &e.Permission, &e.Door, &e.TenantID} {
		*text = valid(*text)
	}
	for _, text := range []*string{&e.Name, &e.Action, &e.Target, &e.CorrelationID, &e.Reason, &e.Before, &e.After} { // which callers write
		*text = clean(*text)
	}
	e.At, e.EndedAt = e.At.UTC().Truncate(time.Microsecond), e.EndedAt.UTC().Truncate(time.Microsecond)
	return e
}

// clean returns a text without secrets, as storage accepts it.
func clean(text string) string { return cut(redact.Text(valid(text))) }

// valid returns a text as storage accepts it.
func valid(text string) string {
	return cut(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"))
}

// cut cuts a text to MaxText bytes without splitting a character.
func cut(text string) string {
	if len(text) <= MaxText {
		return text
	}
	n := MaxText - len("…")
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
