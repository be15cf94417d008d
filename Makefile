# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` are all a newcomer needs. This file only installs packages and calls
# CMake presets and scripts; how things are built is in CMakeLists.txt.

JOBS ?= 2
FUZZ_SECONDS ?= 60
CMAKE_BUILD = cmake --build --preset

.PHONY: demo program test build verify dev asan tsan lint format fuzz bench chaos chaos-short reproduce clean

demo: program
	@tools/bootstrap demo
	@tools/demo

# Without the packages of tests and benchmarks. `make build` goes on in the same directory; what is
# configured there already stays.
program:
	@tools/bootstrap build
	@[ -f build/release/build.ninja ] || cmake --preset program
	@$(CMAKE_BUILD) release -j $(JOBS) --target fedgen

build:
	@tools/bootstrap build test bench
	@cmake --preset release
	@$(CMAKE_BUILD) release -j $(JOBS)

test: build
	@python3 tools/check_layers.py
	@ctest --preset release -j $(JOBS)

# What is slower: style, Debug, sanitizers, a minute of fuzzing per target, a federation under fire.
verify: lint dev asan tsan fuzz chaos-short

lint:
	@tools/bootstrap build test verify
	@tools/lint

dev asan tsan:
	@tools/bootstrap build test
	@cmake --preset $@
	@$(CMAKE_BUILD) $@ -j $(JOBS)
	@ctest --preset $@ -j $(JOBS)

fuzz:
	@tools/bootstrap build verify
	@tools/fuzz $(FUZZ_SECONDS)

format:
	@tools/bootstrap verify
	@git ls-files '*.h' '*.cc' | xargs clang-format-19 -i

# A federation that is killed, stopped, delayed and cut must end with the bytes of one process.
chaos-short: program
	@tools/bootstrap chaos
	@tests/chaos.py --program build/release/fedgen --kills 50
	@tests/chaos.py --program build/release/fedgen --kills 10 --delay 0.002 --namespace \
	  --set federation.average_every=0 --set learner.rest=true

chaos: program
	@tools/bootstrap chaos
	@tests/chaos.py --program build/release/fedgen --kills 1000 --rounds 1000

# The paper's tables, figures and trade-offs, and the comparisons of algorithms and estimators: hours.
reproduce: program
	@build/release/fedgen reproduce all

bench: build
	@bench/run

clean:
	@rm -rf build out
