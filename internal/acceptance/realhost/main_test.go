package realhost

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/hosts"
)

func TestMain(m *testing.M) {
	hosts.Main()
	if file, ok := os.LookupEnv(recordEnv); ok {
		fmt.Fprintln(os.Stderr, beHandler(file))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(staged.unstage))
}
