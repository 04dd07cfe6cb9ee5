package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/metricpush"
)

// Traces go to the endpoint in the standard settings of OpenTelemetry, and nowhere without them.
func TestTracingFrom(t *testing.T) {
	t.Parallel()
	const base = "http://collector:4318"
	for name, c := range map[string]struct {
		set  map[string]string
		want Tracing
		bad  string // the subject of the error
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

func TestPushSettings(t *testing.T) {
	t.Parallel()
	type env = map[string]string
	const minute, ten = time.Minute, 10 * time.Second
	for name, test := range map[string]struct {
		env       env
		want      metricpush.Config
		complaint string
	}{
		"nothing":            {env: env{}},
		"only an endpoint":   {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}},
		"none":               {env: env{"OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"}},
		"the SDK is off":     {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}},
		"the general one":    {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318/"}, want: metricpush.Config{Endpoint: "http://localhost:4318/v1/metrics", Interval: minute, Timeout: ten}},
		"that for metrics":   {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "https://b/m"}, want: metricpush.Config{Endpoint: "https://b/m", Interval: minute, Timeout: ten}},
		"everything":         {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, y = c=", "OTEL_METRIC_EXPORT_INTERVAL": "30000", "OTEL_METRIC_EXPORT_TIMEOUT": "2000", "OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,team=a", "WEBSITE_SITE_NAME": "app"}, want: metricpush.Config{Endpoint: "http://a/v1/metrics", Headers: env{"x-key": "a b", "y": "c="}, Interval: 30 * time.Second, Timeout: 2 * time.Second, Service: "mine", Attributes: env{"team": "a", "faas.name": "app", "cloud.provider": "azure", "cloud.platform": "azure_functions"}}},
		"its name":           {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other"}, want: metricpush.Config{Endpoint: "http://a/v1/metrics", Interval: minute, Timeout: ten, Service: "other"}},
		"another exporter":   {env: env{"OTEL_METRICS_EXPORTER": "console"}, complaint: "OTEL_METRICS_EXPORTER is \"console\""},
		"no endpoint":        {env: env{"OTEL_METRICS_EXPORTER": "otlp"}, complaint: "OTEL_EXPORTER_OTLP_ENDPOINT is not set"},
		"no address":         {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, complaint: "begins with http://"},
		"gRPC":               {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, complaint: "OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\""},
		"headers":            {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_HEADERS": "hush"}, complaint: "OTEL_EXPORTER_OTLP_HEADERS: set name=value"},
		"a short interval":   {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_METRIC_EXPORT_INTERVAL": "10"}, complaint: "OTEL_METRIC_EXPORT_INTERVAL is \"10\""},
		"a Go duration":      {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_METRIC_EXPORT_TIMEOUT": "10s"}, complaint: "OTEL_METRIC_EXPORT_TIMEOUT"},
		"everything at once": {env: env{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_METRIC_EXPORT_INTERVAL": "x", "OTEL_RESOURCE_ATTRIBUTES": "x"}, complaint: "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		got, err := pushFrom(NewReader(func(name string) (string, bool) { v, ok := test.env[name]; return v, ok }))
		if test.complaint != "" {
			if err == nil || !strings.Contains(err.Error(), test.complaint) || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		for _, m := range []*map[string]string{&got.Headers, &got.Attributes} {
			if len(*m) == 0 {
				*m = nil
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}
