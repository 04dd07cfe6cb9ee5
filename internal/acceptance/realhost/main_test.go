package realhost

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if file, ok := os.LookupEnv(recordEnv); ok {
		fmt.Fprintln(os.Stderr, beHandler(file))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(staged.unstage))
}
