// Package kql holds queries against Kusto's own parser and the published columns of the tables they read.
//
// It promises that a syntax error, an operator or function that does not exist, and a table or column that is not published, is a finding. It
// runs no query: what is in a dynamic column, and what a table holds, it does not know. Columns are those of the reference of Azure
// Monitor's tables (tables.json). The parser is the npm package @kusto/language-service-next, which package npm installs, and wants
// Node.js.
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

// Finding is something that is wrong with a query.
type Finding struct {
	// Line is that of the query, from 1 on.
	Line int
	// Code is Kusto's name of what is wrong, Message says it.
	Code, Message string
}

// String is the finding in one line.
func (f Finding) String() string { return fmt.Sprintf("%d: %s (%s)", f.Line, f.Message, f.Code) }

// Result is what the parser makes of a query.
type Result struct {
	// Columns are those of its result.
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
