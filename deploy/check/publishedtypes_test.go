package check

import (
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/deploy/check/arm"
	"github.com/vibedata/roundhouse/internal/daemon"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// The published types are in a Go module that contains only data: the module proxy keeps them, and their checksum is
// known here.
const (
	typesModule = "github.com/Azure/terraform-provider-azapi@v1.15.0"
	typesSum    = "h1:A963Vm8nOaOTu9uUKvI6fr3Q69TFOdqwSqSp8Y0/p7M="
	typesFolder = "/internal/azure/generated"
	// newerTypes is the environment variable with a folder like generated/ of github.com/Azure/bicep-types-az, for
	// API versions that the module does not have.
	newerTypes = "ROUNDHOUSE_ARM_TYPES"
)

var published = sync.OnceValues(func() (*arm.Types, error) {
	var module struct{ Dir, Sum, Error string }
	out, err := exec.Command("go", "mod", "download", "-json", typesModule).Output()
	if jsonErr := json.Unmarshal(out, &module); err != nil || jsonErr != nil || module.Sum != typesSum {
		return nil, &daemon.MissingError{Tool: typesModule, Get: "let the go command reach a module proxy: " + module.Error, Err: err}
	}
	dirs := []string{module.Dir + typesFolder}
	if newer := os.Getenv(newerTypes); newer != "" {
		dirs = append(dirs, newer)
	}
	return arm.Open(dirs...)
})

// publishedTypes returns the types that resources are checked against.
func publishedTypes(t *testing.T) *arm.Types {
	t.Helper()
	testenv.Long(t)
	types, err := published()
	testenv.Started(t, err)
	return types
}
