package settings

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Tracing is where traces go, as the standard settings of OpenTelemetry say it. Those that are not read here (limits, batches,
// time-outs, certificates, resource attributes) its SDK reads itself.
type Tracing struct {
	// Endpoint is the address that OTLP over HTTP is posted to (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or what
	// OTEL_EXPORTER_OTLP_ENDPOINT begins); "" for no traces, as with OTEL_TRACES_EXPORTER=none and OTEL_SDK_DISABLED=true.
	Endpoint string
	// Headers go along (OTEL_EXPORTER_OTLP_TRACES_HEADERS, OTEL_EXPORTER_OTLP_HEADERS). They may be secrets.
	Headers map[string]string
	// Ratio is the share of traces that are recorded of those that begin here (OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG).
	Ratio float64
	// Service is the name of the app in traces (OTEL_SERVICE_NAME; roundhouse unless set).
	Service string
}

// tracingFrom reads where traces go.
func tracingFrom(r *Reader) (Tracing, error) {
	t := Tracing{Service: "roundhouse"}
	if name := r.Text("OTEL_SERVICE_NAME"); name != "" {
		t.Service = name
	}
	const disabled, exporter = "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"
	off := strings.EqualFold(r.Text(disabled), "true")
	var errs [4]error
	switch kind := r.Text(exporter); kind {
	case "", "otlp":
	case "none":
		off = true
	default:
		errs[0] = fmt.Errorf("%s is %.64q: traces go out by otlp, or not at all (none)", exporter, kind)
	}
	t.Endpoint, errs[1] = OTLPEndpoint(r, "TRACES")
	t.Headers, errs[2] = OTLPHeaders(r, "TRACES")
	t.Ratio, errs[3] = samplerFrom(r)
	if err := errors.Join(errs[:]...); err != nil {
		return Tracing{}, err
	}
	if off {
		t.Endpoint = ""
	}
	return t, nil
}

// OTLPEndpoint is the address that a signal ("TRACES" or "METRICS") goes to, "" for none.
func OTLPEndpoint(r *Reader, signal string) (string, error) {
	const common, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
	own := "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"
	name, text, path := own, r.Text(own), ""
	if text == "" {
		name, text, path = common, r.Text(common), "/v1/"+strings.ToLower(signal)
	}
	if text == "" {
		return "", nil
	}
	if p := r.Text(protocol); p != "" && p != "http/protobuf" {
		return "", fmt.Errorf("%s is %.64q: set it to http/protobuf, the only one there is here", protocol, p)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "" {
		// The value is not repeated: it may be a URL with a credential in it.
		return "", fmt.Errorf("%s is not the address of a collector: set it to one like http://localhost:4318", name)
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	return u.String(), nil
}

// OTLPHeaders are those that go with a signal. No error repeats them: they may be secrets.
func OTLPHeaders(r *Reader, signal string) (map[string]string, error) {
	name := "OTEL_EXPORTER_OTLP_" + signal + "_HEADERS"
	text := r.Text(name)
	if text == "" {
		name = "OTEL_EXPORTER_OTLP_HEADERS"
		text = r.Text(name)
	}
	if text == "" {
		return nil, nil
	}
	headers := map[string]string{}
	for i, pair := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			return nil, fmt.Errorf("%s: entry %d is not a header: set entries like name=value, with commas between them", name, i+1)
		}
		headers[key] = decoded
	}
	return headers, nil
}

// samplerFrom is the share of traces that OTEL_TRACES_SAMPLER says. Traces of others follow their senders, as with the parentbased_
// samplers: a run whose sender's trace is recorded would be missing in it.
func samplerFrom(r *Reader) (float64, error) {
	const name, arg = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	sampler, text := strings.TrimPrefix(r.Text(name), "parentbased_"), r.Text(arg)
	switch sampler {
	case "", "always_on":
		return 1, nil
	case "always_off":
		return 0, nil
	case "traceidratio":
		if text == "" {
			return 1, nil
		}
		ratio, err := strconv.ParseFloat(text, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return 0, fmt.Errorf("%s is %.64q: set a share from 0 to 1, such as 0.1", arg, text)
		}
		return ratio, nil
	default:
		return 0, fmt.Errorf("%s is %.64q: set parentbased_always_on, parentbased_always_off or parentbased_traceidratio", name, sampler)
	}
}
