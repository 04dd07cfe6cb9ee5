package azure

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	typeSuffix  = "@odata.type"
	timeLayout  = "2006-01-02T15:04:05.0000000Z"
	edmInt64    = "Edm.Int64"
	edmDouble   = "Edm.Double"
	edmDateTime = "Edm.DateTime"
	edmBinary   = "Edm.Binary"
)

// encodeEntity encodes an entity as the service's JSON, with the types that JSON does not have.
func encodeEntity(e *tables.Entity) ([]byte, error) {
	out := make(map[string]any, 2+2*len(e.Properties))
	out["PartitionKey"], out["RowKey"] = e.Partition, e.Row
	for name, v := range e.Properties {
		switch v := v.(type) {
		case nil:
		case int64:
			out[name], out[name+typeSuffix] = strconv.FormatInt(v, 10), edmInt64
		case float64:
			out[name], out[name+typeSuffix] = encodeDouble(v), edmDouble
		case time.Time:
			out[name], out[name+typeSuffix] = v.UTC().Format(timeLayout), edmDateTime
		case []byte:
			out[name], out[name+typeSuffix] = base64.StdEncoding.EncodeToString(v), edmBinary
		default:
			out[name] = v
		}
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("%w: encode: %w", tables.ErrInvalid, err)
	}
	return body, nil
}

func encodeDouble(v float64) any {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return v
}

func decodeEntity(body []byte) (tables.Entity, error) {
	var raw map[string]any
	if err := unmarshal(body, &raw); err != nil {
		return tables.Entity{}, err
	}
	return entityOf(raw)
}

func decodeEntities(body []byte) ([]tables.Entity, error) {
	var answer struct {
		Value []map[string]any `json:"value"`
	}
	if err := unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if len(answer.Value) == 0 {
		return nil, nil
	}
	out := make([]tables.Entity, len(answer.Value))
	for i, raw := range answer.Value {
		e, err := entityOf(raw)
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

func unmarshal(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%w: read the answer: %w", tables.ErrOutcomeUnknown, err)
	}
	return nil
}

func entityOf(raw map[string]any) (tables.Entity, error) {
	e := tables.Entity{Properties: make(map[string]any, len(raw))}
	for name, v := range raw {
		switch {
		case name == "PartitionKey":
			e.Partition, _ = v.(string)
		case name == "RowKey":
			e.Row, _ = v.(string)
		case name == "odata.etag":
			e.ETag, _ = v.(string)
		case name == "Timestamp", v == nil, strings.Contains(name, "@"), strings.HasPrefix(name, "odata."):
		default:
			kind, _ := raw[name+typeSuffix].(string)
			value, err := decodeValue(kind, v)
			if err != nil {
				return tables.Entity{}, fmt.Errorf("property %s of %s: %w", name, e.Key, err)
			}
			e.Properties[name] = value
		}
	}
	return e, nil
}

// decodeValue reads a property of the type that the service named; "" for the types that JSON has. A GUID, which this
// program does not write, is read as its text.
func decodeValue(kind string, v any) (any, error) {
	text, isText := v.(string)
	switch n := v.(type) {
	case bool:
		return n, nil
	case json.Number:
		return decodeNumber(kind, n.String())
	}
	if !isText {
		return nil, fmt.Errorf("a value of JSON type %T", v)
	}
	switch kind {
	case edmInt64:
		return strconv.ParseInt(text, 10, 64)
	case edmDouble:
		return strconv.ParseFloat(text, 64)
	case edmDateTime:
		t, err := time.Parse(time.RFC3339Nano, text)
		return t.UTC(), err
	case edmBinary:
		return base64.StdEncoding.DecodeString(text)
	}
	return text, nil
}

// decodeNumber distinguishes an Edm.Int32 from an Edm.Double, which the service writes with a point or an exponent.
func decodeNumber(kind, text string) (any, error) {
	switch {
	case kind == edmDouble || strings.ContainsAny(text, ".eE"):
		return strconv.ParseFloat(text, 64)
	case kind == edmInt64:
		return strconv.ParseInt(text, 10, 64)
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return strconv.ParseFloat(text, 64)
	}
	return int32(n), nil
}
