package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// figure is one measured value.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`

	note string // the value to compare it with
}

// jsonLine prints a figure as JSON.
func jsonLine(out io.Writer, f figure) error {
	return json.NewEncoder(out).Encode(f)
}

// table prints a figure as text.
func table(out io.Writer, f figure) error {
	value := strconv.FormatFloat(f.Value, 'f', -1, 64)
	line := fmt.Sprintf("%-56s %12s %-18s %s", f.Name, value, f.Unit, f.note)
	_, err := fmt.Fprintln(out, strings.TrimRight(line, " "))
	return err
}

// rounded keeps four significant digits, and all digits of a whole number.
func rounded(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, max(0, 3-math.Floor(math.Log10(math.Abs(v)))))
	return math.Round(v*scale) / scale
}
