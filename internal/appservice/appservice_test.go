package appservice_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/appservice"
	"github.com/vibedata/roundhouse/internal/graphfake"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/entra"
)

const (
	application  = "0b1f5a2e-7c55-4c2a-9d0f-3f0f6b1f7a11"
	addressInEnv = "APPSERVICE_TEST_ADDRESS"
)

// TestMain also runs the process that a test starts.
func TestMain(m *testing.M) {
	if address := os.Getenv(addressInEnv); address != "" {
		os.Exit(list(address))
	}
	goleak.VerifyTestMain(m)
}

// list lists passwords with the environment's certificate and identity.
func list(address string) int {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err == nil {
		var graph *entra.Graph
		if graph, err = entra.NewGraph(address, credential, nil); err == nil {
			passwords, listErr := graph.Passwords(context.Background(), application)
			if err = listErr; err == nil {
				os.Stdout.WriteString(passwords[0].DisplayName)
				return 0
			}
		}
	}
	os.Stderr.WriteString(err.Error())
	return 1
}

// Another process reaches Graph as in production, by its environment alone.
func TestEnvironment(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	server := graphfake.New()
	server.AddApplication(application)
	server.Add(application, "by hand")
	address, _ := server.Start(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), addressInEnv+"="+address)
	child.Env = append(child.Env, appservice.Start(t, server.Tokens()).Environment(t)...)
	var problem strings.Builder
	child.Stderr = &problem
	if out, err := child.Output(); err != nil || string(out) != "by hand" {
		t.Errorf("the other process says %q, %v: %s", out, err, problem.String())
	}
}
