# Regent: set up, build, run and test. `make` alone lists what there is.
#
# Everything that cargo builds needs the PHP that tools/php prints: recipes below pass it as PHP_CONFIG. Without a word that is the
# distribution's, which is installed in a minute and answers requests in processes. With PHP=zts it is a thread-safe one, which is
# built once (ten minutes on two cores) and kept outside the checkout; see tools/build-php. With PHP=fast it is that of
# `make php-fast`.

TARGET := $(or $(CARGO_TARGET_DIR),target)

export PATH := $(PATH):$(HOME)/.cargo/bin
# Given to make itself: the environment may have a PHP that means something else.
php = $(if $(filter command,$(firstword $(origin PHP))),$(PHP),$(default_php))
default_php = system
# Each recipe's shell starts with the path of php-config, so that cargo always sees the same one.
with_php = PHP_CONFIG="$$(tools/php $(php))" && export PHP_CONFIG REGENT_TEST_PHP=$(php) &&

# The benchmark is a workspace of its own; its programs lie beside the server that they measure.
instructions = cargo run --release --quiet --manifest-path bench/Cargo.toml --target-dir '$(TARGET)' --package regent-instructions

# What these make is run here alone and by nobody else, so that the PHP may have known holes: see tools/php-floor.sh.
test try test-fast test-long test-kubernetes test-php attack chaos bench instructions instructions-update check: export REGENT_OLD_PHP := yes

.PHONY: help run build php php-fast test try test-fast test-long test-kubernetes test-php fuzz attack chaos bench deb instructions instructions-update check format clean setup

help: ## list the targets
	@echo "Usage: make TARGET"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A build of its own: the server and PHP's engine alone, by a profile that is compiled without optimisation across crates.
run: setup ## build what the demo needs, and serve it with its dashboard (PORT=… and ADMIN_PORT=… choose where, PHP=zts a thread-safe PHP)
	@$(with_php) cargo build --profile quick --package regent-cli --package regent-engine-php
	@PORT='$(PORT)' ADMIN_PORT='$(ADMIN_PORT)' exec tools/demo '$(TARGET)/quick/regent'

build: setup ## build the release binaries: regent, regent-php and regent-native
	@$(with_php) cargo build --release

php: setup ## install the distribution's PHP, or with PHP=zts build the newest thread-safe one, and say where it is
	@tools/php $(php) --newest

php-fast: setup ## build a PHP for speed, in about forty minutes: with a profile of real applications (PHP=fast then has it)
	@tools/build-php --fast

test: setup ## run the tests: units, models, the server from outside, applications (PHP=zts with a thread-safe PHP)
	@$(with_php) tools/test

try: setup ## build what changed, and run the tests from outside whose name contains TEST (TEST=reload::ports_come)
	@$(with_php) tools/test try '$(TEST)'

test-fast: setup ## run the tests that need neither the network nor the machine for themselves
	@$(with_php) tools/test units server

test-long: setup ## run the long tests: gigabytes up and down, a thousand rounds of the admin API
	@$(with_php) tools/test long

test-kubernetes: setup ## install the chart in a real Kubernetes API server, and scale real servers by what they serve (built once, in twenty minutes)
	@$(with_php) tools/test kubernetes

fuzz: setup ## fuzz what strangers send, for an hour (SECONDS=60 each, FUZZ="connection frames")
	@SECONDS_EACH='$(SECONDS)' tools/fuzz $(FUZZ)

test-php: default_php = zts
test-php: setup ## run PHP's own tests over HTTP, in each mode (PHPT="--mode classic --only 'ext/session/*'" for some)
	@$(with_php) tools/test php -- $(PHPT)

attack: setup ## attack a server from PHP and over HTTP, beside steady load, for ten minutes (SECONDS=300 of each of its two parts)
	@$(with_php) REGENT_ATTACK_SECONDS='$(or $(SECONDS),300)' tools/test try attacks:: --nocapture --test-threads 1

chaos: setup ## let everything go wrong under a steady load for ten minutes, and write a page about it (CHAOS=600 seconds)
	@$(with_php) cargo build --workspace --bins --test chaos && REGENT_CHAOS_SECONDS='$(or $(CHAOS),600)' cargo test --workspace --test chaos -- --nocapture

deb: build ## make the Debian packages of the distribution's PHP and test them (PHP=zts: with a thread-safe PHP beside it, built once in ten minutes)
	@tools/php system >/dev/null
	@$(with_php) tools/package '$(TARGET)/release' >'$(TARGET)/packages'
	@if [ '$(php)' != system ]; then \
	  PHP_CONFIG="$$(tools/php system)" cargo build --release --package regent-engine-php --target-dir '$(TARGET)/system' && \
	  tools/package --engine '$(TARGET)/system/release' '$(TARGET)' >>'$(TARGET)/packages'; fi
	@$(with_php) REGENT_DEB= tools/test package && cat '$(TARGET)/packages'

bench: build ## measure Regent beside other servers, and write a report (BENCH="sweep --help" for one suite)
	@cargo build --release --quiet --manifest-path bench/Cargo.toml --target-dir '$(TARGET)' && '$(TARGET)/release/regent-bench' $(BENCH)

# The stored figures are those of the thread-safe PHP.
instructions instructions-update: default_php = zts
instructions: build ## count the instructions of a request, beside the stored figures (INSTRUCTIONS="--top 30")
	@tools/setup valgrind && $(instructions) -- $(INSTRUCTIONS)

instructions-update: build ## store the counts in bench/instructions.toml
	@tools/setup valgrind && $(instructions) -- --update --repeat 3 $(INSTRUCTIONS)

check: setup ## formatting, lints, and what cargo-deny says of the dependencies if it is installed
	@$(with_php) tools/check

format: ## format the sources
	@for m in Cargo.toml bench/Cargo.toml fuzz/libfuzzer/Cargo.toml; do cargo fmt --all --manifest-path $$m || exit 1; done

clean: ## remove what cargo built; PHP and packages stay in the cache
	@cargo clean

setup:
	@tools/setup
