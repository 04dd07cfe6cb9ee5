package localhost

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// [-][d.]hh:mm[:ss[.fffffff]], or a whole number of days.
var timeSpan = regexp.MustCompile(`^(-)?(?:(\d{1,8})\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,7}))?)?$`)

// parseTimeSpan reads a .NET TimeSpan, the form of every duration in host.json and of constant timer schedules.
func parseTimeSpan(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if days, err := strconv.ParseInt(s, 10, 32); err == nil && days > -100_000 && days < 100_000 {
		return time.Duration(days) * 24 * time.Hour, nil
	}
	m := timeSpan.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a time span: write hh:mm:ss", s)
	}
	part := func(i int) time.Duration {
		n, _ := strconv.Atoi("0" + m[i]) // the pattern allows digits only, eight at most
		return time.Duration(n)
	}
	days, hours, minutes, seconds := part(2), part(3), part(4), part(5)
	if hours > 23 || minutes > 59 || seconds > 59 || days >= 100_000 {
		return 0, fmt.Errorf("%q is not a time span: hours go to 23, minutes and seconds to 59", s)
	}
	ticks, _ := strconv.Atoi((m[6] + "0000000")[:7]) // digits only; a tick is 100 ns
	span := days*24*time.Hour + hours*time.Hour + minutes*time.Minute + seconds*time.Second +
		time.Duration(ticks)*100*time.Nanosecond
	if m[1] == "-" {
		return -span, nil
	}
	return span, nil
}
