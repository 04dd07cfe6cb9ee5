// Command determinism reports operations in the code of orchestrators that a replay cannot repeat. Package
// determinism lists them.
//
//	go run github.com/vibedata/roundhouse/orchestrator/determinism/cmd/determinism ./...
//	go vet -vettool=$(which determinism) ./...
//
// The second command stores its facts about packages in the build cache. With -fix it applies the suggested fixes.
package main

import (
	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/vibedata/roundhouse/orchestrator/determinism"
)

func main() { singlechecker.Main(determinism.Analyzer) }
