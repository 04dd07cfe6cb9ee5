# Everything a developer runs. ARGS goes to the command behind a target: make run ARGS=--once, make test ARGS=-race

.DEFAULT_GOAL := help
.PHONY: help run start test test-short test-all lint bench fuzz functions dashboards stage template clean

lane = go run ./scripts/lane $(if $(SEED),-seed $(SEED)) $(if $(LOAD),-load $(LOAD)) $(if $(TIMES),-times $(TIMES)) $(if $(ARGS),-args "$(ARGS)")

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run everything here: Azurite, a local Functions host, the handler, a sample message
	@echo "==> Compiling the command line (the first time, for a minute or two)" >&2
	@go build -o bin/roundhouse ./cmd/roundhouse
	@exec bin/roundhouse dev $(ARGS)

start: ## the same under Azure Functions Core Tools: func start
	@go build -o bin/roundhouse ./cmd/roundhouse
	@exec bin/roundhouse dev --func $(ARGS)

test: ## the short lane, then what a pull request has to pass; LANES=change PACKAGES=./poller/... SEED=... ARGS=-v
	@set -e; for lane in $(or $(LANES),short change); do $(lane) $$lane $(PACKAGES); done

test-short: ## stores in memory and virtual time only, in about two minutes
	@$(lane) short $(PACKAGES)

test-all: ## every case of every test, and the race detector everywhere; what runs at night, for an hour
	@$(lane) all $(PACKAGES)

lint: ## gofmt, go vet, staticcheck, and govulncheck where its database can be reached
	scripts/lint

bench: ## transactions, speed and memory, beside the peers' figures; ARGS="--json --only tx/"
	@go run ./scripts/bench $(ARGS)

fuzz: ## each fuzz target for 20 s, or ARGS=5s
	scripts/fuzz $(ARGS)

functions: ## write functions/ anew, from the definitions of the engines
	ROUNDHOUSE_UPDATE_FUNCTIONS=1 go test ./cmd/handler -count=1 -run '^TestFunctionsAreGenerated$$'

dashboards: ## write the dashboards for Grafana anew, from the code that makes them
	cd deploy/observability/dashboards && ROUNDHOUSE_UPDATE_DASHBOARDS=1 go test . -count=1 -run '^TestGenerated$$'

stage: ## lay out dist/ for a deployment (linux/amd64)
	scripts/stage

template: ## hold the template for Azure, azd's project, workflows, image and dashboards against what they are for
	@for module in deploy/check deploy/observability/dashboards; do go test -C $$module $(ARGS) ./... || exit 1; done

clean: ## remove what the other targets have made
	rm -rf bin dist .run
