module github.com/vibedata/roundhouse/deploy/check

go 1.26.0

require (
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/tree-sitter-grammars/tree-sitter-bicep v1.1.0
	github.com/tree-sitter/go-tree-sitter v0.24.0
	github.com/vibedata/roundhouse v0.0.0-00010101000000-000000000000
	go.yaml.in/yaml/v3 v3.0.6
)

require go.uber.org/goleak v1.3.0 // indirect

require (
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/google/go-cmp v0.7.0
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mattn/go-pointer v0.0.1 // indirect
	github.com/mattn/go-runewidth v0.0.21 // indirect
	github.com/mattn/go-shellwords v1.0.12 // indirect
	github.com/rhysd/actionlint v1.7.12 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.3 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace github.com/vibedata/roundhouse => ../..

tool github.com/rhysd/actionlint/cmd/actionlint
