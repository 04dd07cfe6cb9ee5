// Package outworld does input and output.
package outworld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/vibedata/roundhouse/orchestrator"
)

var runtime *orchestrator.Runtime

var _ = orchestrator.NewOrchestrator("io", func(ctx *orchestrator.Context, in string) (int, error) {
	_, _ = os.ReadFile(in)             // want `calls os\.ReadFile: do it in an activity`
	_, _ = os.Stdout.WriteString(in)   // want `uses os\.Stdout: ` `calls os\.File\.WriteString: `
	_, _ = filepath.Glob(in)           // want `calls filepath\.Glob: `
	_ = exec.Command(in).Run()         // want `calls exec\.Command: ` `calls exec\.Cmd\.Run: `
	_, _ = net.Dial("tcp", in)         // want `calls net\.Dial: `
	_, _ = http.Get(in)                // want `calls http\.Get: `
	_, _ = http.DefaultClient.Head(in) // want `uses http\.DefaultClient: ` `calls http\.Client\.Head: `
	db, _ := sql.Open("postgres", in)  // want `calls sql\.Open: `
	_, err := db.Query(in)             // want `calls sql\.DB\.Query: `
	_, _ = fmt.Scan(&in)               // want `calls fmt\.Scan: `
	var conn net.Conn
	_, _ = conn.Write(nil)                        // want `calls net\.Conn\.Write: `
	return len(os.Getenv(in)) + len(os.Args), err // want `calls os\.Getenv: hand it in with the input` `uses os\.Args: `
})

var _ = orchestrator.NewOrchestrator("engine room", func(ctx *orchestrator.Context, in string) (int, error) {
	_ = orchestrator.Info(context.Background())                             // want `calls orchestrator\.Info: that is for activities` `calls context\.Background: `
	_, err := runtime.Run(context.Background(), orchestrator.Start{ID: in}) // want `calls orchestrator\.Runtime\.Run: that is for activities` `calls context\.Background: `
	return 0, err
})

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in string) (int, error) {
	if net.ParseIP(in) == nil || errors.Is(sql.ErrNoRows, os.ErrNotExist) || os.IsNotExist(nil) {
		return http.StatusOK, fmt.Errorf("%s: %s", http.StatusText(http.StatusOK), filepath.Base(in))
	}
	return http.StatusAccepted, &net.AddrError{}
})
