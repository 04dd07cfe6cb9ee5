package architecture

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// withoutSDK returns the packages that work without Azure: a program in memory builds and ships none of its SDK.
func withoutSDK() []string {
	return []string{"./orchestrator", "./orchestrator/orchestratortest", "./orchestrator/tasks", "./orchestrator/worker",
		"./tables", "./queues", "./blobs", "./tables/hostlock", "./internal/payload", "./examples/hello", "./examples/timer", "./examples/event"}
}

// The dependencies of those packages, indirect ones included, have no package of the SDK. Package azure does depend on
// it, which proves that the test finds it.
func TestNoSDKWhereNoneIsNeeded(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	if !slices.ContainsFunc(dependencies(t, "./azure"), isSDK) {
		t.Fatal("package azure has no SDK: this test looks for the wrong thing")
	}
	for _, pkg := range withoutSDK() {
		if found := slices.DeleteFunc(dependencies(t, pkg), func(dep string) bool { return !isSDK(dep) }); len(found) > 0 {
			t.Errorf("%s depends on %s", pkg, strings.Join(found, ", "))
		}
	}
}

func isSDK(pkg string) bool {
	return strings.HasPrefix(pkg, sdk) || strings.HasPrefix(pkg, "github.com/AzureAD/")
}

// dependencies returns all packages that a package needs to build.
func dependencies(t *testing.T, pkg string) []string {
	t.Helper()
	list := exec.Command("go", "list", "-deps", pkg)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	return strings.Fields(string(out))
}
