package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/internal/jsonc"
)

// The host's own defaults. Without functionTimeout the limit depends on the plan: 5 minutes on the Consumption plan
// is the minimum of all plans.
const (
	defaultFunctionTimeout = 5 * time.Minute
	defaultMaxDequeueCount = 5
)

// unlimited is a functionTimeout of "-1".
const unlimited time.Duration = -1

// HostFile holds the fields of host.json for this program, with the host's defaults for missing ones.
type HostFile struct {
	// FunctionTimeout is the timeout after which the host fails an invocation and, two seconds later, kills this
	// process; or unlimited.
	FunctionTimeout time.Duration
	// MaxDequeueCount is the number of deliveries after which the host moves a message to the poison queue.
	MaxDequeueCount int
}

// RequestTimeout returns the timeout of a request, up to longest: the answer has to come before the host's timeout.
func (h HostFile) RequestTimeout(longest time.Duration) time.Duration {
	if h.FunctionTimeout == unlimited {
		return longest
	}
	return min(longest, h.FunctionTimeout-budgetMargin)
}

// readHostFile reads host.json in dir. Like the host, it lets the environment override a value by the name
// AzureFunctionsJobHost__<path>, and uses the defaults without such a file.
func readHostFile(dir string, r *Reader) (HostFile, error) {
	path := filepath.Join(dir, "host.json")
	var file struct {
		FunctionTimeout json.RawMessage
		Extensions      struct {
			Queues struct{ MaxDequeueCount json.RawMessage }
		}
	}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return HostFile{}, fmt.Errorf("read host.json: %w", err)
	}
	if err == nil {
		if err := jsonc.Unmarshal(content, &file); err != nil {
			return HostFile{}, fmt.Errorf("read %s: it must be JSON, with comments at most: %w", path, err)
		}
	}
	h := HostFile{FunctionTimeout: defaultFunctionTimeout, MaxDequeueCount: defaultMaxDequeueCount}
	var timeoutErr, countErr error
	if text := hostValue(file.FunctionTimeout, r, "AzureFunctionsJobHost__functionTimeout"); text != "" {
		h.FunctionTimeout, timeoutErr = parseTimeSpan(text)
		if timeoutErr != nil {
			timeoutErr = fmt.Errorf("functionTimeout of host.json: %w", timeoutErr)
		}
	}
	if text := hostValue(file.Extensions.Queues.MaxDequeueCount, r, "AzureFunctionsJobHost__extensions__queues__maxDequeueCount"); text != "" {
		h.MaxDequeueCount, countErr = strconv.Atoi(text)
		if countErr != nil || h.MaxDequeueCount < 1 {
			countErr = fmt.Errorf("extensions.queues.maxDequeueCount of host.json: %q is not a whole number of 1 or more", text)
		}
	}
	return h, errors.Join(timeoutErr, countErr)
}

// hostValue returns the text of a value of host.json, a string or a number, or of the variable that overrides it.
func hostValue(value json.RawMessage, r *Reader, variable string) string {
	if text, ok := r.find(variable); ok && text != "" {
		return text
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

var timeSpan = regexp.MustCompile(`^(?:(\d{1,4})\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.\d{1,7})?)?$`)

// parseTimeSpan reads the host's notation for durations, [d.]hh:mm[:ss[.fffffff]]; "-1" is unlimited. Fractions of a
// second are dropped.
func parseTimeSpan(text string) (time.Duration, error) {
	if text == "-1" {
		return unlimited, nil
	}
	parts := timeSpan.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("%q is not a time span such as 00:10:00", text)
	}
	var n [4]time.Duration // days, hours, minutes, seconds
	for i, part := range parts[1:] {
		v, _ := strconv.Atoi("0" + part) // digits only, or empty, by the expression
		n[i] = time.Duration(v)
	}
	if n[1] > 23 || n[2] > 59 || n[3] > 59 {
		return 0, fmt.Errorf("%q is not a time span such as 00:10:00: hours end at 23, minutes and seconds at 59", text)
	}
	span := n[0]*24*time.Hour + n[1]*time.Hour + n[2]*time.Minute + n[3]*time.Second
	if span == 0 {
		return 0, fmt.Errorf("%q leaves no time", text)
	}
	return span, nil
}
