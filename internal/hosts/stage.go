package hosts

import (
	_ "embed" // host.json
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
)

// hostFile is the host.json of the app. A test compares it with the deployed one.
//
//go:embed host.json
var hostFile []byte

// localSettings is the minimal settings file of the local host.
const localSettings = `{"IsEncrypted": false, "Values": {"FUNCTIONS_WORKER_RUNTIME": "custom"}}`

// HandlerRole is the line of the environment that makes this program the handler of the app.
const HandlerRole = roleVariable + "=" + roleHandler

// stage lays out the files of a host, without the program.
func stage(root string) error {
	err := errors.Join(os.MkdirAll(root, 0o755), os.WriteFile(filepath.Join(root, "host.json"), hostFile, 0o600),
		os.WriteFile(filepath.Join(root, "local.settings.json"), []byte(localSettings), 0o600))
	if err != nil {
		return err
	}
	environment := map[string]string{settings.Storage: "UseDevelopmentStorage=true", "FUNCTIONS_APP_ROOT_PATH": root}
	manifest, err := handler.Describe(app(), func(name string) (string, bool) { value, ok := environment[name]; return value, ok })
	for _, f := range manifest.Functions {
		err = errors.Join(err, f.Write(root))
	}
	return err
}

// Stage lays out the app as deployed, with this program as its handler, which has to be started with [HandlerRole].
func Stage(root string) error {
	if err := stage(root); err != nil {
		return fmt.Errorf("stage the app: %w", err)
	}
	if err := copyProgram(filepath.Join(root, "handler")); err != nil {
		return fmt.Errorf("stage the app: %w", err)
	}
	return nil
}

// copyProgram copies this program to a file.
func copyProgram(to string) (err error) {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
