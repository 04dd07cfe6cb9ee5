package pollers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vibedata/roundhouse/internal/jsonc"
)

// readValues returns the settings of a file such as local.settings.json.
func readValues(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var local struct{ Values jsonc.Values }
	if err := jsonc.Unmarshal(text, &local); err != nil {
		return nil, fmt.Errorf("%s has to be JSON whose Values are texts: %w", file, err)
	}
	return local.Values, nil
}

// writeValue sets one setting of a file, and leaves the rest of its text unchanged.
func writeValue(file, name, value string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	after, err := withValue(text, name, value)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	// A partly written file would be invalid: the new file is written next to the old one and replaces it.
	made, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = made.Write(after)
	err = errors.Join(err, made.Chmod(info.Mode().Perm()), made.Close())
	if err == nil {
		err = os.Rename(made.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(made.Name()))
	}
	return nil
}

// withValue sets a setting in the text of a file.
func withValue(text []byte, name, value string) ([]byte, error) {
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	written := bytes.TrimSpace(quoted.Bytes())
	plain := jsonc.Standard(text) // with every member at its position
	values, _, err := memberOf(plain, 0, len(plain), "Values")
	if err != nil {
		return nil, err
	}
	from, to, err := memberOf(plain, values, len(plain), name)
	switch {
	case err == nil:
		return splice(text, from, to, written), nil
	case !errors.Is(err, errNoMember):
		return nil, err
	}
	member := append([]byte("\n    \""+name+"\": "), written...)
	inside := values + 1
	if rest := bytes.TrimSpace(plain[inside:]); len(rest) > 0 && rest[0] != '}' {
		member = append(member, ',')
	}
	return splice(text, inside, inside, member), nil
}

var errNoMember = errors.New("there is no such member")

// memberOf finds the value of a member of the object at from, as a range of the text.
func memberOf(text []byte, from, end int, name string) (start, stop int, err error) {
	d := json.NewDecoder(bytes.NewReader(text[from:end]))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return 0, 0, fmt.Errorf("what has to hold %s is no JSON object", name)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return 0, 0, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return 0, 0, err
		}
		if key == name {
			stop = from + int(d.InputOffset())
			return stop - len(value), stop, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: %s", errNoMember, name)
}

func splice(text []byte, from, to int, with []byte) []byte {
	return append(append(append([]byte{}, text[:from]...), with...), text[to:]...)
}
