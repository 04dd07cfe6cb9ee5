package localhost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/jsonc"
)

// hostConfig is host.json with the environment's overrides and the real host's defaults applied.
type hostConfig struct {
	executable       string
	arguments        []string
	workingDirectory string
	handlerPort      int // 0: any free port
	initTimeout      time.Duration
	functionTimeout  time.Duration // 0: unbounded
	forward          bool
	proxy            bool
	errorsOnStderr   bool
	routePrefix      string
	queues           queueOptions
}

// queueOptions is the section extensions.queues.
type queueOptions struct {
	batchSize       int
	newThreshold    int
	maxDequeue      int
	maxPolling      time.Duration
	retryVisibility time.Duration // how long a message is hidden after a failed invocation
	base64          bool          // messageEncoding: base64 rather than none
}

// overridePrefix marks settings that replace a value of host.json: AzureFunctionsJobHost__a__b.
const overridePrefix = "azurefunctionsjobhost__"

// loadHostConfig reads host.json under root.
func loadHostConfig(root string, env environment) (hostConfig, error) {
	data, err := os.ReadFile(filepath.Join(root, "host.json"))
	if err != nil {
		return hostConfig{}, fmt.Errorf("read host.json (the script root has to be a staged app): %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(jsonc.Standard(data)))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return hostConfig{}, fmt.Errorf("parse host.json: %w", err)
	}
	reader := configReader{values: map[string]string{}}
	flatten("", tree, reader.values)
	for name, value := range env {
		if key, ok := strings.CutPrefix(strings.ToLower(name), overridePrefix); ok {
			reader.values[strings.ReplaceAll(key, "__", ":")] = value
		}
	}
	config := reader.hostConfig(env)
	if err := errors.Join(reader.errs...); err != nil {
		return hostConfig{}, fmt.Errorf("host.json: %w", err)
	}
	return config, nil
}

// flatten converts a JSON tree to the flat form in which the real host looks values up: lower-case keys joined by
// colons, array elements by their index, every value as text.
func flatten(prefix string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			flatten(join(prefix, strings.ToLower(name)), member, into)
		}
	case []any:
		for i, element := range v {
			flatten(join(prefix, strconv.Itoa(i)), element, into)
		}
	case nil:
	default:
		into[prefix] = fmt.Sprint(v)
	}
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + ":" + name
}

func (r *configReader) hostConfig(env environment) hostConfig {
	if version := r.text("version", ""); version != "2.0" {
		r.fail("version", "has to be \"2.0\"")
	}
	for _, key := range []string{"customhandler:http:", "configurationprofile", "concurrency:dynamicconcurrencyenabled", "httpworker:"} {
		r.refuse(key)
	}
	config := hostConfig{
		workingDirectory: r.text("customhandler:description:workingdirectory", ""),
		handlerPort:      r.number("customhandler:port", 0, 0, 65535),
		initTimeout:      r.span("customhandler:initializationtimeout", 30*time.Second, time.Millisecond, time.Hour),
		functionTimeout:  r.functionTimeout(),
		forward:          r.flag("customhandler:enableforwardinghttprequest"),
		proxy:            r.flag("customhandler:enableproxyinghttprequest"),
		errorsOnStderr:   r.flag("customhandler:description:usestderrorstreamforerrorsonly"),
		routePrefix:      strings.Trim(r.text("extensions:http:routeprefix", "api"), "/"),
		queues:           r.queueOptions(env),
	}
	// A missing setting stays as it is in the path, and is dropped from the arguments.
	path := r.text("customhandler:description:defaultexecutablepath", "")
	config.executable = env.expand(path, func(reference string) string { return reference })
	if config.executable == "" {
		r.fail("customhandler:description:defaultexecutablepath", "is required: the handler's file name")
	}
	arguments := strings.Join(append(r.list("customhandler:description:arguments"),
		r.list("customhandler:description:workerarguments")...), " ")
	arguments = env.expand(arguments, func(string) string { return "" })
	if strings.Contains(arguments, `"`) {
		r.fail("customhandler:description:arguments", "with quotes are not supported by the local host")
	}
	// The real host joins them unquoted, so an argument with a space arrives as two.
	config.arguments = strings.Fields(arguments)
	return config
}

// functionTimeout reads the only time span that may be -1, for no limit.
func (r *configReader) functionTimeout() time.Duration {
	const key = "functiontimeout"
	if r.text(key, "") == "-1" {
		return 0
	}
	return r.span(key, 30*time.Minute, time.Second, math.MaxInt64)
}

func (r *configReader) queueOptions(env environment) queueOptions {
	const section = "extensions:queues:"
	options := queueOptions{batchSize: r.number(section+"batchsize", 16, 1, 32)}
	// Only the Consumption plan counts as one processor.
	processors := runtime.NumCPU()
	if env["WEBSITE_SKU"] == "Dynamic" {
		processors = 1
	}
	options.newThreshold = r.number(section+"newbatchthreshold", options.batchSize/2*processors, 0, math.MaxInt32)
	options.maxDequeue = r.number(section+"maxdequeuecount", 5, 1, math.MaxInt32)
	slowest := time.Minute
	if strings.EqualFold(env[developmentSetting], "Development") {
		slowest = 2 * time.Second
	}
	options.maxPolling = r.span(section+"maxpollinginterval", slowest, 100*time.Millisecond, math.MaxInt64)
	options.retryVisibility = r.span(section+"visibilitytimeout", 0, 0, 7*24*time.Hour)
	switch encoding := r.text(section+"messageencoding", "base64"); strings.ToLower(encoding) {
	case "base64":
		options.base64 = true
	case "none":
	default:
		r.fail(section+"messageencoding", "has to be \"base64\" or \"none\"")
	}
	return options
}

// configReader reads typed values and collects their errors, so that one error has all of them.
type configReader struct {
	values map[string]string
	errs   []error
}

func (r *configReader) fail(key, problem string) {
	r.errs = append(r.errs, fmt.Errorf("%s %s", key, problem))
}

// refuse reports an unsupported feature; a key that ends in a colon means its whole section.
func (r *configReader) refuse(key string) {
	for present, value := range r.values {
		section := strings.HasSuffix(key, ":") && strings.HasPrefix(present, key)
		if section || present == key && !strings.EqualFold(value, "false") {
			r.fail(present, "is not supported by the local host")
		}
	}
}

func (r *configReader) text(key, missing string) string {
	if value, ok := r.values[key]; ok {
		return value
	}
	return missing
}

func (r *configReader) flag(key string) bool {
	value, err := strconv.ParseBool(strings.ToLower(r.text(key, "false")))
	if err != nil {
		r.fail(key, "has to be true or false")
	}
	return value
}

func (r *configReader) number(key string, missing, least, most int) int {
	text, ok := r.values[key]
	if !ok {
		return missing
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		r.fail(key, fmt.Sprintf("has to be a whole number from %d to %d", least, most))
	}
	return n
}

func (r *configReader) span(key string, missing, least, most time.Duration) time.Duration {
	text, ok := r.values[key]
	if !ok {
		return missing
	}
	span, err := parseTimeSpan(text)
	if err != nil {
		r.fail(key, err.Error())
		return missing
	}
	if span < least || span > most {
		r.fail(key, fmt.Sprintf("is out of range: at least %v and at most %v", least, most))
	}
	return span
}

func (r *configReader) list(key string) []string {
	var list []string
	for i := 0; ; i++ {
		value, ok := r.values[join(key, strconv.Itoa(i))]
		if !ok {
			return list
		}
		list = append(list, value)
	}
}
