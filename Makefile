# A thin face over the CMake presets. `make help` lists what there is.

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
DEV := build/dev
CMAKE_BUILD := cmake --build

.PHONY: help demo check test build deps deps-check format format-check tidy asan tsan storm bench bench-short fuzz install uninstall clean

help:
	@echo 'make demo       install what is missing, build, run the paper'"'"'s experiment in small'
	@echo 'make check      install what is missing, build, run everything that CI runs: format, clang-tidy, tests, fuzzers and'
	@echo '                a short benchmark, tests under ThreadSanitizer, AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make test       build, run the tests'
	@echo 'make build      build only'
	@echo 'make install    into PREFIX ($(PREFIX)); make uninstall takes it out again'
	@echo 'make bench      all benchmarks, ratios in one run'
	@echo 'make format     format the sources; make tidy runs clang-tidy over all of them'
	@echo 'make storm      STORM_EVENTS ($(STORM_EVENTS)) kills, suspensions, revocations and faults while programs run'
	@echo 'make fuzz       each fuzzer for FUZZ_SECONDS (default 60)'

demo: deps
	@scripts/need-cuda.sh
	@scripts/configure.sh dev
	$(CMAKE_BUILD) --preset dev -j$(JOBS) --target product --target workloads
	@scripts/demo.sh $(DEV)

# Everything that CI runs. What fails fast comes first; the whole test suite last, so that its closing line is the last
# word. In this order, one after the other, under `make -j` too.
.NOTPARALLEL:
check:
	@scripts/steps.sh deps-check format-check whole build tidy-changed bench-short tsan asan fuzz-short test

# Configured anew, because what was missing the last time may be here now, and with nothing left out.
.PHONY: whole
whole:
	@scripts/configure.sh dev -DHEDDLE_REQUIRE_ALL=ON

test: build
	ctest --preset dev -j$(JOBS)

deps:
	@scripts/install-deps.sh build

deps-check:
	@scripts/install-deps.sh check

build: $(DEV)/build.ninja
	$(CMAKE_BUILD) --preset dev -j$(JOBS)

$(DEV)/build.ninja:
	cmake --preset dev

format:
	@scripts/format.sh fix

format-check:
	@scripts/format.sh check

tidy: build
	@scripts/tidy.sh $(DEV) $(JOBS)

# Over what the latest commits changed, and what is not committed; over all where the clone has fewer.
TIDY_COMMITS ?= 40
.PHONY: tidy-changed
tidy-changed: build
	@scripts/tidy.sh $(DEV) $(JOBS) $$(git rev-parse -q --verify --short HEAD~$(TIDY_COMMITS))

# AddressSanitizer and UndefinedBehaviorSanitizer over everything.
asan:
	cmake --preset asan
	$(CMAKE_BUILD) --preset asan -j$(JOBS)
	ctest --preset asan -j$(JOBS)

# ThreadSanitizer over the rooms where threads and processes meet.
tsan:
	cmake --preset tsan
	$(CMAKE_BUILD) --preset tsan -j$(JOBS) --target concurrent_tests
	ctest --preset tsan -j$(JOBS)

# Kills, suspensions, revocations, faults at random moments, with jobs running: some 20 minutes on each kind of device.
STORM_EVENTS ?= 10000
storm: build
	HEDDLE_STORM_EVENTS=$(STORM_EVENTS) $(DEV)/bin/storm_test

bench: build
	@scripts/bench.sh $(DEV) full

bench-short: build
	@scripts/bench.sh $(DEV) short

FUZZ_SECONDS ?= 60
fuzz:
	@scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: fuzz-short
fuzz-short:
	@scripts/fuzz.sh 5

install: $(DEV)/build.ninja
	$(CMAKE_BUILD) --preset dev -j$(JOBS) --target product
	cmake --install $(DEV) --prefix $(PREFIX)

# CMake keeps the list of what it installed.
uninstall:
	@test -f $(DEV)/install_manifest.txt || { echo 'nothing was installed from $(DEV)'; exit 1; }
	xargs -d '\n' rm -fv < $(DEV)/install_manifest.txt
	@rmdir $(PREFIX)/lib/heddle $(PREFIX)/libexec/heddle $(PREFIX)/share/heddle $(PREFIX)/share/doc/heddle 2>/dev/null || true
	@for left in /etc/heddle.toml /var/lib/heddle; do \
	  test ! -e $$left || echo "$$left stays: configuration and what balancers have learnt; remove it if you want neither"; \
	done

clean:
	rm -rf build
