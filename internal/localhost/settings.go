package localhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/internal/jsonc"
)

// environment is the app settings, which the host reads and the handler inherits.
type environment map[string]string

// newEnvironment merges settings: extra wins over base (this process's environment), which wins over local.
func newEnvironment(base []string, local map[string]string, extra []string) environment {
	env := environment{}
	for name, value := range local {
		env[name] = value
	}
	for _, list := range [][]string{base, extra} {
		for _, entry := range list {
			if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
				env[name] = value
			}
		}
	}
	return env
}

// list returns the environment in the form for a process, sorted so that it is reproducible.
func (e environment) list() []string {
	list := make([]string, 0, len(e))
	for name, value := range e {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// setting looks up a setting whose name may hold characters that a shell cannot export: "a.b" is also looked up as
// "a_b".
func (e environment) setting(name string) (string, bool) {
	if value, ok := e[name]; ok {
		return value, true
	}
	value, ok := e[strings.ReplaceAll(name, ".", "_")]
	return value, ok
}

var settingReference = regexp.MustCompile(`%([^%\s]+)%`)

// expand replaces %NAME% by the setting; missing returns the replacement for a missing setting.
func (e environment) expand(s string, missing func(reference string) string) string {
	return settingReference.ReplaceAllStringFunc(s, func(reference string) string {
		if value, ok := e.setting(strings.Trim(reference, "%")); ok {
			return value
		}
		return missing(reference)
	})
}

// resolve replaces %NAME% in a binding's property, where a missing setting is an error.
func (e environment) resolve(s string) (string, error) {
	var missing []string
	resolved := e.expand(s, func(reference string) string {
		missing = append(missing, reference)
		return ""
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("app settings %s are missing: add them to local.settings.json or the environment",
			strings.Join(missing, ", "))
	}
	return resolved, nil
}

// truthy reads a setting as the real host reads switches.
func truthy(value string) bool {
	return value == "1" || strings.EqualFold(value, "true")
}

// localSettings reads the settings of local.settings.json under root; no file means no settings.
func localSettings(root string) (map[string]string, error) {
	path := filepath.Join(root, "local.settings.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read local settings: %w", err)
	}
	var file struct {
		IsEncrypted       bool
		Values            jsonc.Values
		ConnectionStrings jsonc.Values
	}
	if err := jsonc.Unmarshal(data, &file); err != nil {
		// The decoder's own text could quote a value, and values may be secrets.
		return nil, fmt.Errorf("parse %s: not valid JSON of the form {\"Values\":{\"NAME\":\"text\"}}", path)
	}
	if file.IsEncrypted {
		return nil, fmt.Errorf("parse %s: encrypted settings are not supported, set IsEncrypted to false", path)
	}
	settings := map[string]string{}
	for name, value := range file.Values {
		settings[name] = value
	}
	for name, value := range file.ConnectionStrings {
		settings["ConnectionStrings:"+name] = value
	}
	return settings, nil
}
