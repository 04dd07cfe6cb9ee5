// Package kql checks queries with Kusto's own parser against the published columns of the tables that they read.
//
// A syntax error, an unknown operator or function, and an unpublished table or column are always findings. The
// package does not run queries, so it knows neither the contents of dynamic columns nor those of tables. The columns
// are those of the reference of Azure Monitor's tables (tables.json). The parser is the npm package
// @kusto/language-service-next, which the package installs with npm; it needs Node.js.
package kql

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"

	"github.com/vibedata/roundhouse/internal/npm"
)

//go:embed package.json package-lock.json
var pinned embed.FS

//go:embed analyse.js
var script string

//go:embed tables.json
var tables []byte

// Finding is a mistake in a query.
type Finding struct {
	// Line is the line in the query, from 1 on.
	Line int
	// Code is Kusto's code of the mistake; Message describes it.
	Code, Message string
}

// String returns the finding in one line.
func (f Finding) String() string { return fmt.Sprintf("%d: %s (%s)", f.Line, f.Message, f.Code) }

// Result is the parser's result for a query.
type Result struct {
	// Columns are the columns of the query's result.
	Columns  []string
	Findings []Finding
}

// Check returns the results of the queries, in their order.
func Check(ctx context.Context, queries []string) ([]Result, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("check queries: node: %w", npm.ErrNoNode)
	}
	dir, err := npm.Set{Name: "kusto", Files: pinned}.Install(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("check queries: %w", err)
	}
	input, err := json.Marshal(map[string]any{"tables": json.RawMessage(tables), "queries": queries})
	if err != nil {
		return nil, fmt.Errorf("check queries: %w", err)
	}
	cmd := exec.CommandContext(ctx, node, "-e", script)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	output, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %.2000s", err, exit.Stderr)
	}
	var results []Result
	if err == nil {
		err = json.Unmarshal(output, &results)
	}
	if err == nil && len(results) != len(queries) {
		err = fmt.Errorf("%d answers to %d queries", len(results), len(queries))
	}
	if err != nil {
		return nil, fmt.Errorf("check queries: run the parser: %w", err)
	}
	return results, nil
}
