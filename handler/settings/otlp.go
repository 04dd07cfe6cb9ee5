package settings

import (
	"fmt"
	"net/url"
	"strings"
)

// otlp is the prefix of the general OTLP settings; those for one signal have its name after that.
const otlp = "OTEL_EXPORTER_OTLP_"

// first returns the first of the settings that is set, or else the last.
func first(r *Reader, names ...string) string {
	for _, name := range names {
		if r.Text(name) != "" {
			return name
		}
	}
	return names[len(names)-1]
}

// endpointFrom returns the whole address for the signal with its own prefix, "" for none: its specific address
// unchanged, or the general one with the path of the signal.
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
		return "", fmt.Errorf("%s: set an address that begins with http:// or https://", name) // it may contain a credential
	}
	if name == otlp+"ENDPOINT" {
		u = u.JoinPath("v1", strings.ToLower(strings.Trim(strings.TrimPrefix(own, otlp), "_")))
	}
	return u.String(), nil
}

// protocolFrom refuses unsupported protocols.
func protocolFrom(r *Reader, own string) error {
	if name := first(r, own+"PROTOCOL", otlp+"PROTOCOL"); r.Text(name) != "" && r.Text(name) != "http/protobuf" {
		return fmt.Errorf("%s is %q: set http/protobuf, or nothing; nothing is sent in another way", name, r.Text(name))
	}
	return nil
}

// pairsFrom reads comma-separated name=value pairs, in the form of W3C baggage. An error contains no values: they may
// be keys.
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
