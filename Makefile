# SPDX-License-Identifier: Apache-2.0
# The front door. CMake builds (CMakePresets.json), tools/ does the rest.
.PHONY: help demo all test campaign check oracle bench soak fmt lint abi

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' Makefile | expand -t 14

demo: build/release/tendon ## a server and four robots on this machine, live
	@build/release/tendon demo

all: ## everything that users get: programs and libraries
	@tools/build --setup --all shipped

bench: build/release/tendon-bench ## every figure beside its limit and its peers
	@build/release/tendon bench all

soak: build/release/tendon-bench ## ten minutes of 32 robots: flat memory, nothing lost
	@build/release/tendon bench soak

test: ## everything, sanitizers and fuzzers too; ends with a count
	@tools/test

campaign: ## what is too long for that, before a release; ends with a count
	@tools/campaign

check: ## the inner loop: unit tests of the dev build
	@tools/build --setup --test --preset dev unit
	@ctest --test-dir build/dev -L unit -j "$$((2 * $$(nproc)))" --output-on-failure --no-tests=error

oracle: ## the planner against glpsol, cbc and an exhaustive grid, at length
	@tools/build --setup --test plan_oracle
	@tools/plan-oracle

lint: ## formatting, clang-tidy, layers and the like
	@tools/lint

fmt: ## formats every source in place
	@tools/lint --fix

abi: ## takes what libtendon exports now as its promise
	@tools/build --setup --test tendon_shared
	@tools/abi --update

.PHONY: build/release/tendon build/release/tendon-bench
build/release/tendon:
	@tools/build tendon

build/release/tendon-bench:
	@tools/build --setup --bench tendon_bench
