package localhost

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roleVariable makes this test binary play a part of the system instead of running tests.
const roleVariable = "LOCALHOST_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "handler":
		playHandler()
	case "host":
		playHost()
	default:
		goleak.VerifyTestMain(m)
	}
}
