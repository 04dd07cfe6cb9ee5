package sqlsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// written is a Config in settings: durations as in Go, such as 5s.
type written struct {
	Config
	Settle  string `json:"settle"`
	Timeout string `json:"timeout"`
}

// Decode reads the configuration of a source, except for DSN and DB. Numbers keep their digits, and unknown members are
// refused.
func Decode(text []byte) (Config, error) {
	var w written
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&w); err != nil {
		return Config{}, fmt.Errorf("source: %w", err)
	}
	var errs [2]error
	w.Config.Settle, errs[0] = duration("settle", w.Settle)
	w.Config.Timeout, errs[1] = duration("timeout", w.Timeout)
	return w.Config, errors.Join(errs[:]...)
}

func duration(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("source: %s is %.32q: set a Go duration of more than 0, such as 5s", name, text)
	}
	return d, nil
}
