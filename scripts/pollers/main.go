// Command pollers lays out the timer functions of the pollers that ROUNDHOUSE_POLLERS defines, or, when that is not in the
// environment, the Values of local.settings.json in the current directory:
//
//	go run ./scripts/pollers        names them, one a line
//	go run ./scripts/pollers DIR    writes DIR/{name}/function.json for each
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vibedata/roundhouse/poller"
)

const setting = "ROUNDHOUSE_POLLERS"

func main() {
	if err := run(os.Args[1:], os.Getenv(setting), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "pollers: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, text string, out io.Writer) error {
	if len(args) > 1 {
		return errors.New("usage: pollers [DIR]")
	}
	var err error
	if text == "" {
		if text, err = local("local.settings.json"); err != nil {
			return err
		}
	}
	settings, err := poller.ParseSettings(text)
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	for _, s := range settings {
		if len(args) == 0 {
			_, err = fmt.Fprintln(out, s.Function())
		} else {
			err = write(filepath.Join(args[0], s.Function()), s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// local is the setting of a local.settings.json, "" when it has none.
func local(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var settings struct{ Values map[string]string }
	if err == nil {
		err = json.Unmarshal(text, &settings)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return settings.Values[setting], nil
}

// write lays out one function.
func write(folder string, s poller.Setting) error {
	type binding struct {
		Type      string `json:"type"`
		Direction string `json:"direction"`
		Name      string `json:"name"`
		Schedule  string `json:"schedule"`
	}
	text, err := json.MarshalIndent(map[string][]binding{"bindings": {{"timerTrigger", "in", "timer", s.Schedule}}}, "", "  ")
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "function.json"), append(text, '\n'), 0o644)
	}
	return err
}
