package settings

import (
	"fmt"
	"net/url"
	"strings"
)

// otlp is what settings begin with that hold for all that OpenTelemetry sends; those for one kind have its name behind that.
const otlp = "OTEL_EXPORTER_OTLP_"

// first is the first of the settings that is set, or else the last.
func first(r *Reader, names ...string) string {
	for _, name := range names {
		if r.Text(name) != "" {
			return name
		}
	}
	return names[len(names)-1]
}

// endpointFrom is the whole address for what settings of its own begin with, "" for none: that of those as it is, or the general one
// with the path of what is sent.
func endpointFrom(r *Reader, own string) (string, error) {
	name := own + "ENDPOINT"
	text := r.Text(name)
	if text == "" {
		name = otlp + "ENDPOINT"
		text = r.Text(name)
	}
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%s: set an address that begins with http:// or https://", name) // it may hold a credential
	}
	if name == otlp+"ENDPOINT" {
		u = u.JoinPath("v1", strings.ToLower(strings.Trim(strings.TrimPrefix(own, otlp), "_")))
	}
	return u.String(), nil
}

// protocolFrom refuses what is not supported.
func protocolFrom(r *Reader, own string) error {
	if name := first(r, own+"PROTOCOL", otlp+"PROTOCOL"); r.Text(name) != "" && r.Text(name) != "http/protobuf" {
		return fmt.Errorf("%s is %q: set http/protobuf, or nothing; nothing is sent in another way", name, r.Text(name))
	}
	return nil
}

// pairsFrom reads name=value pairs with commas between them, in the form of W3C baggage. An error does not show values: they may be
// keys.
func pairsFrom(r *Reader, name string) (map[string]string, error) {
	pairs := map[string]string{}
	for part := range strings.SplitSeq(r.Text(name), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, escaped, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(escaped))
		if key = strings.TrimSpace(key); !ok || err != nil || key == "" {
			return nil, fmt.Errorf("%s: set name=value pairs with commas between them, and percent signs before what is special in values", name)
		}
		pairs[key] = value
	}
	return pairs, nil
}
