package testenv

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Servers is the environment variable that names the folder with the addresses of a lane's servers, which packages
// share. scripts/lane sets it; without it a package starts its own servers.
const Servers = "ROUNDHOUSE_TEST_SERVERS"

// Main runs the tests of a package, then end, fails on leaked goroutines, and exits. It is for TestMain. end closes
// resources that tests share: servers, a built program.
func Main(m *testing.M, end func() error, options ...goleak.Option) {
	goleak.VerifyTestMain(ending{m, end}, options...)
}

// ending is a testing.M that runs end after the tests and before goroutines are counted.
type ending struct {
	m   *testing.M
	end func() error
}

// Run runs the tests.
func (e ending) Run() int {
	code := e.m.Run()
	http.DefaultClient.CloseIdleConnections() // of requests whose ends the tests did not wait for
	if err := e.end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
