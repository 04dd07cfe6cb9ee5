package settings

import (
	"fmt"
	"strconv"

	"github.com/vibedata/roundhouse/handler/direct"
)

// mostDirect bounds the setting: each message that is worked on keeps an orchestration in memory.
const mostDirect = 1000

// directFrom reads how many messages of a queue the process works on that it has sent itself; 0 for none.
func directFrom(r *Reader) (int, error) {
	const name = "ROUNDHOUSE_DIRECT"
	text := r.Text(name)
	if text == "" {
		return direct.DefaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > mostDirect {
		return 0, fmt.Errorf("%s is %.64q: set a number from 0 to %d, such as %d", name, text, mostDirect, direct.DefaultLimit)
	}
	return n, nil
}

// Disabled says whether a function is switched off for the host (AzureWebJobs.<name>.Disabled).
func Disabled(r *Reader, function string) bool {
	for _, name := range []string{"AzureWebJobs." + function + ".Disabled", "AzureWebJobs_" + function + "_Disabled"} {
		switch value, _ := r.lookup(name); value {
		case "1", "true", "True", "TRUE":
			return true
		}
	}
	return false
}
