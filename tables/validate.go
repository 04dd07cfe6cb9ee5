package tables

import (
	"fmt"
	"math"
	"time"
	"unicode"
	"unicode/utf8"
)

// The limits of the service.
const (
	maxOps          = 100
	maxRequest      = 4 << 20
	maxEntity       = 1 << 20
	maxValue        = 64 << 10 // bytes, text as UTF-16
	maxKeyUnits     = 512
	maxCustom       = 252 // 255 with PartitionKey, RowKey and Timestamp
	maxPropertyName = 255
	maxPage         = 1000
	maxEqualities   = 12 // 15 comparisons with key, from and to
	maxWhereUnits   = 512
)

// firstTime is the earliest instant of an Edm.DateTime.
var firstTime = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)

func checkKeyPart(part, s string) error {
	if s == "" {
		return fmt.Errorf("%w: the %s is empty", ErrInvalid, part)
	}
	units := 0
	for i, r := range s {
		switch {
		case illegal(r):
			return fmt.Errorf("%w: %s %q holds %q: build it with EscapeKey", ErrInvalid, part, clip(s), r)
		case r == utf8.RuneError && invalidAt(s, i):
			return fmt.Errorf("%w: %s %q is not UTF-8: build it with EscapeKey", ErrInvalid, part, clip(s))
		case r > 0xffff:
			units++
		}
		units++
	}
	if units > maxKeyUnits {
		return fmt.Errorf("%w: the %s %q... has %d UTF-16 units of at most %d", ErrTooLarge, part, clip(s), units, maxKeyUnits)
	}
	return nil
}

// invalidAt distinguishes an invalid byte at i from a real U+FFFD.
func invalidAt(s string, i int) bool {
	_, size := utf8.DecodeRuneInString(s[i:])
	return size == 1
}

// checkRows checks that all operations are in one partition and that each row occurs once.
func checkRows(ops []Op) error {
	rows := make(map[string]struct{}, len(ops))
	for i := range ops {
		key := ops[i].Entity.Key
		if key.Partition != ops[0].Entity.Partition {
			return &OpError{Index: i, Key: key, Err: fmt.Errorf("%w: a transaction has one partition, this one began with %q", ErrInvalid, ops[0].Entity.Partition)}
		}
		if _, twice := rows[key.Row]; twice {
			return &OpError{Index: i, Key: key, Err: fmt.Errorf("%w: the row is in the transaction twice", ErrInvalid)}
		}
		rows[key.Row] = struct{}{}
	}
	return nil
}

func checkOp(op *Op) error {
	if op.Kind < OpInsert || op.Kind > OpDelete {
		return fmt.Errorf("%w: %v: use Insert, Replace, Upsert or Delete", ErrInvalid, op.Kind)
	}
	if err := CheckKey(op.Entity.Key); err != nil {
		return err
	}
	if op.Kind == OpDelete {
		return nil
	}
	// The service counts an entity as 4 bytes, its keys, and 8 bytes a property with its name and value.
	size := 4 + 2*(utf16Len(op.Entity.Partition)+utf16Len(op.Entity.Row))
	count := 0
	for name, v := range op.Entity.Properties {
		if v == nil {
			continue
		}
		count++
		if err := checkPropertyName(name); err != nil {
			return err
		}
		n, err := valueSize(v)
		if err != nil {
			return fmt.Errorf("property %s: %w", name, err)
		}
		size += 8 + 2*utf16Len(name) + n
	}
	if count > maxCustom {
		return fmt.Errorf("%w: %d properties of at most %d", ErrTooLarge, count, maxCustom)
	}
	if size > maxEntity {
		return fmt.Errorf("%w: the entity takes %d bytes of at most %d", ErrTooLarge, size, maxEntity)
	}
	return nil
}

func checkPropertyName(name string) error {
	for i, r := range name {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_' || r != utf8.RuneError && unicode.IsLetter(r) || i > 0 && unicode.IsDigit(r) {
			continue
		}
		return fmt.Errorf("%w: property name %q: use letters, digits and _, no digit first", ErrInvalid, clip(name))
	}
	switch {
	case name == "":
		return fmt.Errorf("%w: a property has no name", ErrInvalid)
	case name == "PartitionKey" || name == "RowKey" || name == "Timestamp":
		return fmt.Errorf("%w: the property %s belongs to the service", ErrInvalid, name)
	case utf16Len(name) > maxPropertyName:
		return fmt.Errorf("%w: the property name %s... has more than %d characters", ErrTooLarge, clip(name), maxPropertyName)
	}
	return nil
}

// valueSize returns the size that the service counts for a value, or an error for a value that the service does not
// accept.
func valueSize(v any) (int, error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return 0, fmt.Errorf("%w: the text is not UTF-8: store it as []byte", ErrInvalid)
		}
		n := 2 * utf16Len(v)
		if n > maxValue {
			return 0, fmt.Errorf("%w: the text takes %d bytes of at most %d: use PutText", ErrTooLarge, n, maxValue)
		}
		return n + 4, nil
	case []byte:
		if len(v) > maxValue {
			return 0, fmt.Errorf("%w: %d bytes of at most %d", ErrTooLarge, len(v), maxValue)
		}
		return len(v) + 4, nil
	case bool:
		return 1, nil
	case int32:
		return 4, nil
	case int64, float64:
		return 8, nil
	case time.Time:
		if v.Before(firstTime) || v.UTC().Year() > 9999 {
			return 0, fmt.Errorf("%w: the time %v is not of the years 1601 to 9999: leave an unset time out", ErrInvalid, v)
		}
		return 8, nil
	}
	return 0, fmt.Errorf("%w: type %T: use string, bool, int32, int64, float64, time.Time or []byte", ErrInvalid, v)
}

func checkSpan(part string, s Span) error {
	if s.One {
		return checkKeyPart(part+" key", s.Is)
	}
	for _, bound := range [...]string{s.From, s.To} {
		if bound == "" {
			continue
		}
		if err := checkKeyPart(part+" bound", bound); err != nil {
			return err
		}
	}
	return nil
}

func checkWhereValue(v any) error {
	if _, err := valueSize(v); err != nil {
		return err
	}
	n := 0
	switch v := v.(type) {
	case string:
		n = utf16Len(v)
	case []byte:
		n = len(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: %v cannot be looked for", ErrInvalid, v)
		}
	}
	if n > maxWhereUnits {
		return fmt.Errorf("%w: a value of %d to look for, of at most %d", ErrTooLarge, n, maxWhereUnits)
	}
	return nil
}

// clip shortens outside text that an error quotes.
func clip(s string) string {
	if len(s) <= 64 {
		return s
	}
	return s[:64]
}
