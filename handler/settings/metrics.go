package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/handler/metricpush"
)

// The settings of OpenTelemetry for the destination of metrics, in addition to the general and the specific
// OTEL_EXPORTER_OTLP_... ones.
const (
	metricsExporter = "OTEL_METRICS_EXPORTER"
	otlpMetrics     = "OTEL_EXPORTER_OTLP_METRICS_"
	exportInterval  = "OTEL_METRIC_EXPORT_INTERVAL"
	exportTimeout   = "OTEL_METRIC_EXPORT_TIMEOUT"
	serviceName     = "OTEL_SERVICE_NAME"
	resourceSetting = "OTEL_RESOURCE_ATTRIBUTES"
	sdkDisabled     = "OTEL_SDK_DISABLED"
)

// leastExport keeps metrics from costing more than the work.
const leastExport = time.Second

// pushFrom reads the destination of metrics. None is used unless OTEL_METRICS_EXPORTER is otlp; then an endpoint is
// required. Unused settings are not checked: they may be those of another exporter.
func pushFrom(r *Reader) (metricpush.Config, error) {
	switch exporter := r.Text(metricsExporter); {
	case strings.EqualFold(r.Text(sdkDisabled), "true"), exporter == "", exporter == "none", exporter == "prometheus":
		return metricpush.Config{}, nil
	case exporter != "otlp":
		return metricpush.Config{}, fmt.Errorf("%s is %q: set otlp, or none; the page for Prometheus is always there", metricsExporter, exporter)
	}
	c := metricpush.Config{Service: r.Text(serviceName)}
	var errs [6]error
	c.Endpoint, errs[0] = endpointFrom(r, otlpMetrics)
	if c.Endpoint == "" && errs[0] == nil {
		errs[0] = fmt.Errorf("%s is otlp, and %s is not set: set it to the address of the receiver, such as http://localhost:4318", metricsExporter, otlp+"ENDPOINT")
	}
	c.Headers, errs[1] = pairsFrom(r, first(r, otlpMetrics+"HEADERS", otlp+"HEADERS"))
	c.Attributes, errs[2] = pairsFrom(r, resourceSetting)
	c.Interval, errs[3] = milliseconds(r, exportInterval, metricpush.DefaultInterval)
	c.Timeout, errs[4] = milliseconds(r, first(r, otlpMetrics+"TIMEOUT", otlp+"TIMEOUT", exportTimeout), metricpush.DefaultTimeout)
	errs[5] = protocolFrom(r, otlpMetrics)
	if c.Service == "" {
		c.Service = c.Attributes["service.name"]
	}
	delete(c.Attributes, "service.name")
	c.Attributes = withFunctionApp(r, c.Attributes)
	return c, errors.Join(errs[:]...)
}

// milliseconds reads a time in OpenTelemetry's form.
func milliseconds(r *Reader, name string, usual time.Duration) (time.Duration, error) {
	text := r.Text(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	d := time.Duration(n) * time.Millisecond
	if err != nil || d < leastExport {
		return 0, fmt.Errorf("%s is %q: set milliseconds, %d or more", name, text, leastExport.Milliseconds())
	}
	return d, nil
}

// withFunctionApp adds the platform's attributes of the app, unless they are set.
func withFunctionApp(r *Reader, attributes map[string]string) map[string]string {
	if attributes == nil {
		attributes = map[string]string{}
	}
	for attribute, setting := range map[string]string{"faas.name": "WEBSITE_SITE_NAME", "faas.instance": "WEBSITE_INSTANCE_ID", "cloud.region": "REGION_NAME"} {
		if value := r.Text(setting); value != "" && attributes[attribute] == "" {
			attributes[attribute] = value
		}
	}
	if attributes["faas.name"] != "" && attributes["cloud.provider"] == "" {
		attributes["cloud.provider"], attributes["cloud.platform"] = "azure", "azure_functions"
	}
	return attributes
}
