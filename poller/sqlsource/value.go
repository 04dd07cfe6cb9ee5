package sqlsource

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// canonical returns the text of a driver's value, with all of its digits.
func canonical(v any, c class) string {
	switch v := v.(type) {
	case nil:
		return ""
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case []byte:
		switch c {
		case classBytes:
			return base64.StdEncoding.EncodeToString(v)
		case classRowVersion:
			return "0x" + hex.EncodeToString(v)
		}
		return canonicalText(string(v), c)
	case string:
		return canonicalText(v, c)
	}
	return fmt.Sprint(v)
}

// canonicalText writes times as in RFC 3339. Times before the year 1, which it does not have, are as in PostgreSQL's
// JSON.
func canonicalText(text string, c class) string {
	if before, bc := strings.CutSuffix(text, " BC"); bc && (c == classTime || c == classLocal) {
		return canonicalText(before, c) + " BC"
	}
	switch c {
	case classTime:
		text = strings.Replace(text, " ", "T", 1)
		if before, ok := strings.CutSuffix(text, "+00"); ok {
			return before + "Z"
		}
		if len(text) > 10 && text[10] == 'T' && !strings.ContainsAny(text[11:], "Z+-") {
			return text + "Z"
		}
	case classLocal:
		return strings.Replace(text, " ", "T", 1)
	}
	return text
}

// appendJSON encodes a driver's value as JSON.
func appendJSON(to []byte, v any, c class) []byte {
	switch v := v.(type) {
	case nil:
		return append(to, "null"...)
	case int64:
		if c == classBoolean {
			return strconv.AppendBool(to, v != 0)
		}
		return strconv.AppendInt(to, v, 10)
	case uint64:
		return strconv.AppendUint(to, v, 10)
	case bool:
		return strconv.AppendBool(to, v)
	case float64:
		return appendFloat(to, v, 64)
	case float32:
		return appendFloat(to, float64(v), 32)
	case []byte:
		if c == classBytes {
			to = append(to, '"')
			return append(base64.StdEncoding.AppendEncode(to, v), '"')
		}
	}
	text := canonical(v, c)
	switch c {
	case classInteger, classDecimal, classFloat, classXID:
		if isNumber(text) {
			return append(to, text...)
		}
	case classJSON:
		if json.Valid([]byte(text)) {
			return append(to, text...)
		}
	}
	return appendString(to, text)
}

func appendFloat(to []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return appendString(to, strconv.FormatFloat(v, 'g', -1, bits))
	}
	return strconv.AppendFloat(to, v, 'g', -1, bits)
}

// isNumber reports whether a text is a number in JSON, whose rules are stricter than those of databases.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') && json.Valid([]byte(text))
}

func appendString(to []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if b := text[i]; b < ' ' || b == '"' || b == '\\' || b >= utf8.RuneSelf {
			quoted, err := json.Marshal(text)
			if err != nil { // unreachable: a string can be marshalled
				return append(to, "null"...)
			}
			return append(to, quoted...)
		}
	}
	to = append(to, '"')
	to = append(to, text...)
	return append(to, '"')
}

// keyTexts reads a tiebreaker: the canonical texts of the key columns.
func keyTexts(tiebreaker json.RawMessage, keys []column) ([]string, error) {
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(tiebreaker)))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("the place's tiebreaker %s is not a JSON object", tiebreaker)
	}
	texts := make([]string, len(keys))
	for i, k := range keys {
		v, ok := object[k.name]
		if !ok {
			return nil, fmt.Errorf("the place's tiebreaker %s has no %s", tiebreaker, k.name)
		}
		text, err := textOf(v)
		if err != nil {
			return nil, fmt.Errorf("the place's tiebreaker %s: %s: %w", tiebreaker, k.name, err)
		}
		texts[i] = text
	}
	return texts, nil
}

// textOf returns the canonical text of a value from JSON or from Go code.
func textOf(v any) (string, error) {
	switch v := native(v).(type) {
	case string:
		return v, nil
	case bool, int, int32, int64, uint64, json.Number:
		return fmt.Sprint(v), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), nil
	}
	return "", fmt.Errorf("a value of type %T cannot be compared", v)
}
