package settings

import (
	"fmt"
	"strconv"

	"github.com/vibedata/roundhouse/handler/direct"
)

// mostDirect bounds the setting: each message in progress keeps an orchestration in memory.
const mostDirect = 1000

// directFrom reads how many of its own messages of a queue the process handles in parallel; 0 for none.
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

// Disabled reports whether a function is disabled for the host (AzureWebJobs.<name>.Disabled).
func Disabled(r *Reader, function string) bool {
	for _, name := range []string{"AzureWebJobs." + function + ".Disabled", "AzureWebJobs_" + function + "_Disabled"} {
		switch value, _ := r.lookup(name); value {
		case "1", "true", "True", "TRUE":
			return true
		}
	}
	return false
}
