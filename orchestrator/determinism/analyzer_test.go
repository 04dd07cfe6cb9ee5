package determinism_test

import (
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator/determinism"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is where the module begins: the packages under testdata belong to it, and use the real orchestrator package.
const (
	root     = "../.."
	packages = "./orchestrator/determinism/testdata/src/"
)

// Comments in the packages list the expected findings; any other finding is an error.
func TestFindings(t *testing.T) {
	testenv.Long(t) // the analyzer asks the go command for the packages
	t.Parallel()
	analysistest.Run(t, root, determinism.Analyzer, packages+"...")
}

// The golden files are the packages after the suggested fixes.
func TestSuggestedFixes(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	analysistest.RunWithSuggestedFixes(t, root, determinism.Analyzer, packages+"clock", packages+"random", packages+"logging", packages+"unused")
}
