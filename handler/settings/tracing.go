package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Tracing is the destination of traces, from the standard settings of OpenTelemetry. The SDK reads the others itself
// (limits, batches, timeouts, certificates, resource attributes).
type Tracing struct {
	// Endpoint is the address for OTLP over HTTP (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or OTEL_EXPORTER_OTLP_ENDPOINT
	// with a path); "" for no traces, as with OTEL_TRACES_EXPORTER=none and OTEL_SDK_DISABLED=true.
	Endpoint string
	// Headers are sent with traces (OTEL_EXPORTER_OTLP_TRACES_HEADERS, OTEL_EXPORTER_OTLP_HEADERS). They may be
	// secrets.
	Headers map[string]string
	// Ratio is the sampled share of traces that begin here (OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG).
	Ratio float64
	// Service is the name of the app in traces (OTEL_SERVICE_NAME; roundhouse unless set).
	Service string
}

// tracingFrom reads the destination of traces.
func tracingFrom(r *Reader) (Tracing, error) {
	t := Tracing{Service: "roundhouse"}
	if name := r.Text(serviceName); name != "" {
		t.Service = name
	}
	const exporter = "OTEL_TRACES_EXPORTER"
	off := strings.EqualFold(r.Text(sdkDisabled), "true")
	var errs [5]error
	switch kind := r.Text(exporter); kind {
	case "", "otlp":
	case "none":
		off = true
	default:
		errs[0] = fmt.Errorf("%s is %.64q: traces go out by otlp, or not at all (none)", exporter, kind)
	}
	const own = otlp + "TRACES_"
	t.Endpoint, errs[1] = endpointFrom(r, own)
	t.Headers, errs[2] = pairsFrom(r, first(r, own+"HEADERS", otlp+"HEADERS"))
	t.Ratio, errs[3] = samplerFrom(r)
	if t.Endpoint != "" {
		errs[4] = protocolFrom(r, own)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return Tracing{}, err
	}
	if off {
		t.Endpoint = ""
	}
	return t, nil
}

// samplerFrom returns the sampled share from OTEL_TRACES_SAMPLER. Traces of other senders follow their decision, as
// with the parentbased_ samplers: otherwise a run would be missing in its sender's trace.
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
