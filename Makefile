# SPDX-License-Identifier: Apache-2.0
#
# make ci is the test command of the README; everything else is a part of it.

GO       ?= go
GOBIN    := $(shell $(GO) env GOPATH)/bin
FUZZTIME ?= 2s
RACETIME ?= 5s
SLOWED   := ^Test(Undo(Bound)?Killed|IgnoreMemory|TreeMemory|SearchContentMemory|LargeCalls)$$
# -race needs cgo; nothing else here does, and nothing shipped has it.
STATIC   := CGO_ENABLED=0

.PHONY: build test fmt vet cross races program bounds race fuzz bench lint package release-check ci

build:
	$(STATIC) $(GO) build -trimpath -o postern ./cmd/postern

test:
	$(STATIC) $(GO) test ./...

fmt:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt needed:"; echo "$$out"; exit 1; }

vet:
	$(STATIC) $(GO) vet ./...

cross:
	$(STATIC) GOOS=darwin $(GO) vet ./...
	$(STATIC) GOOS=windows $(GO) vet ./...

# Everything once, with the race detector, but for what it makes slow: that is in
# bounds. Each attacker has RACETIME. Many tests wait for processes and clocks, so
# three packages run at once.
races:
	CGO_ENABLED=1 POSTERN_RACE=$(RACETIME) $(GO) test -race -p 3 -timeout 15m -skip '$(SLOWED)' $$($(GO) list ./... | grep -v /cmd/postern$$)

# The program's tests start hundreds of processes, which the detector makes slow,
# as do those that kill one at each of its steps: they run in bounds.
program:
	$(STATIC) $(GO) test -timeout 15m ./cmd/postern

# Memory, which the race detector multiplies, and what it makes slow.
bounds:
	$(STATIC) $(GO) test -count=1 -run 'KilledWriters' ./internal/state/audit
	$(STATIC) $(GO) test -count=1 -run '^TestUndo(Bound)?Killed$$' ./enforce
	$(STATIC) $(GO) test -count=1 -run 'Memory|LargeCalls|Replacements|BigStream' ./core/pathguard ./internal/fsserver/...

# The attackers alone, for longer.
race:
	CGO_ENABLED=1 POSTERN_RACE=60s $(GO) test -race -timeout 60m -count=1 -run Race ./...

fuzz:
	FUZZTIME=$(FUZZTIME) .ci/fuzz

bench:
	$(STATIC) $(GO) test -run '^$$' -bench . -benchmem ./...

lint:
	.ci/golangci-lint run ./...

# Packages of HEAD, made twice and checked: docs/release.md.
package:
	.ci/package

# The same of all that a release has, by goreleaser: ten minutes of processor time.
release-check:
	.ci/package release

# What fails fastest comes first. The program's tests and bounds mostly wait: they
# run beside each other.
ci: fmt vet cross build races
	$(MAKE) --jobs=2 --output-sync=target program bounds
	$(MAKE) fuzz lint
