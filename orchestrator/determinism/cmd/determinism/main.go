// Command determinism refuses, in the code of orchestrators, what a replay cannot repeat. Package determinism says what
// that is.
//
//	go run github.com/vibedata/roundhouse/orchestrator/determinism/cmd/determinism ./...
//	go vet -vettool=$(which determinism) ./...
//
// The second way keeps what it learns about packages in the build cache. With -fix it applies the suggested fixes.
package main

import (
	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/vibedata/roundhouse/orchestrator/determinism"
)

func main() { singlechecker.Main(determinism.Analyzer) }
