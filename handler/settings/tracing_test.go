package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Traces go where the standard settings of OpenTelemetry say, and nowhere without them.
func TestTracingFrom(t *testing.T) {
	t.Parallel()
	const base = "http://collector:4318"
	for name, c := range map[string]struct {
		set  map[string]string
		want Tracing
		bad  string // what the error names
	}{
		"nothing":   {nil, Tracing{Service: "roundhouse", Ratio: 1}, ""},
		"a base":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": base}, Tracing{Service: "roundhouse", Ratio: 1, Endpoint: base + "/v1/traces"}, ""},
		"one's own": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": base, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": base + "/t", "OTEL_SERVICE_NAME": "app"}, Tracing{Service: "app", Ratio: 1, Endpoint: base + "/t"}, ""},
		"off":       {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": base, "OTEL_TRACES_EXPORTER": "none"}, Tracing{Service: "roundhouse", Ratio: 1}, ""},
		"disabled":  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": base, "OTEL_SDK_DISABLED": "true"}, Tracing{Service: "roundhouse", Ratio: 1}, ""},
		"a tenth": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": base, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"},
			Tracing{Service: "roundhouse", Ratio: 0.1, Endpoint: base + "/v1/traces"}, ""},
		"none of them": {map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, Tracing{Service: "roundhouse"}, ""},
		"headers": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": base, "OTEL_EXPORTER_OTLP_HEADERS": "key=a%20b, other=c"},
			Tracing{Service: "roundhouse", Ratio: 1, Endpoint: base + "/v1/traces", Headers: map[string]string{"key": "a b", "other": "c"}}, ""},
		"an exporter that is none": {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, Tracing{}, "OTEL_TRACES_EXPORTER"},
		"a sampler that is none":   {map[string]string{"OTEL_TRACES_SAMPLER": "jaeger_remote"}, Tracing{}, "OTEL_TRACES_SAMPLER"},
		"a share above 1":          {map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1.5"}, Tracing{}, "OTEL_TRACES_SAMPLER_ARG"},
		"gRPC":                     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": base, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, Tracing{}, "OTEL_EXPORTER_OTLP_PROTOCOL"},
		"no address":               {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://user:secret@collector"}, Tracing{}, "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"no header":                {map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "secret"}, Tracing{}, "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tracingFrom(NewReader(func(name string) (string, bool) { v, ok := c.set[name]; return v, ok }))
			if c.bad != "" {
				if err == nil || !strings.Contains(err.Error(), c.bad) || strings.Contains(err.Error(), "secret") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if len(got.Headers) == 0 {
				got.Headers = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
