# shellcheck shell=bash
# The test programs of the workspace: how they are built, found and run. Sourced by tools/test, which sets `logs` (a directory for what
# they say, a file for each) and `arguments` (what the user has for them).

target=${CARGO_TARGET_DIR:-target}
# What was built last, a line for each program: the directory of its package, its name, its path.
built=$target/debug/test-programs

say() { printf '\033[1mtest\033[0m  %s\n' "$*"; }

# One build of the workspace for all tests, so that nothing is compiled twice with other features. What cargo says of the
# programs is JSON, a line for each.
build_programs() {
  mkdir -p "$target/debug"
  cargo build --workspace --bins --tests --message-format=json-render-diagnostics >"$logs/cargo.json" || return 1
  note_programs <"$logs/cargo.json" >"$built"
}

# The server with its engines, and the tests from outside.
build_black_box() {
  mkdir -p "$target/debug"
  cargo build --workspace --bins --test server --message-format=json-render-diagnostics >"$logs/cargo.json" || return 1
  note_programs <"$logs/cargo.json" >"$built"
}

note_programs() {
  sed -nE 's|.*"manifest_path":"([^"]*)/Cargo.toml".*"name":"([^"]*)","src_path".*"test":true\},"features".*"executable":"([^"]*)".*|\1 \2 \3|p'
}

# The lines of the programs with these names.
programs() {
  local name
  for name in "$@"; do awk -v name="$name" '$2 == name' "$built"; done
}

# Those of a crate.
programs_of() {
  awk -v directory="/crates/$1" 'substr($1, length($1) - length(directory) + 1) == directory' "$built"
}

# Those of all others.
programs_but() {
  awk -v names=" $* " '!index(names, " " $2 " ")' "$built"
}

# run_program LINE ARGUMENTS…: where cargo would run it. Times of tests are an option that libtest calls unstable.
run_program() {
  local directory name path
  read -r directory name path <<<"$1"
  shift
  (cd "$directory" && CARGO_MANIFEST_DIR=$directory RUSTC_BOOTSTRAP=1 exec "$path" "$@" -Z unstable-options --report-time)
}

list_tests() {
  local directory name path
  read -r directory name path <<<"$1"
  (cd "$directory" && "$path" --list 2>/dev/null) | sed -n 's/: test$//p'
}

# run_programs LINES ARGUMENTS…: one after the other. Fails when one did.
run_programs() {
  local lines=$1 line status=0
  shift
  while read -r line; do
    [ -z "$line" ] || show_program "$line" "$@" || status=1
  done <<<"$lines"
  return $status
}

# The same, two at a time: most of them have one test that takes longer than all others. The calling shell has nothing else in the
# background.
run_programs_in_pairs() {
  local lines=$1 line running=0 status=0
  shift
  while read -r line; do
    if [ $running = 2 ]; then
      wait -n || status=1
      running=1
    fi
    show_program "$line" "$@" &
    running=$((running + 1))
  done <<<"$lines"
  while [ $running -gt 0 ]; do
    wait -n || status=1
    running=$((running - 1))
  done
  return $status
}

show_program() {
  local directory name path line=$1
  shift
  read -r directory name path <<<"$line"
  directory=$(basename "$directory")
  run_program "$line" "$@" "${arguments[@]}" 2>&1 </dev/null | tee "$logs/$directory-$name.log" | show_progress "$directory $name"
  return "${PIPESTATUS[0]}"
}

# run_command TITLE COMMAND…: whatever else counts as a test.
run_command() {
  local title=$1
  shift
  "$@" 2>&1 </dev/null | tee "$logs/$title.log" | show_progress "$title"
  return "${PIPESTATUS[0]}"
}

# What a person wants to see of what libtest says: failures at once and whole, a line now and then while all goes well, and the
# sum of each program that had a test to run.
show_progress() {
  local title=$1 line count=0 total='' failing='' began=$SECONDS told=$SECONDS
  while IFS= read -r line; do
    case $line in
      'running '*' test'*) total=${line#running } total=${total%% *} ;;
      'test result: '*)
        failing=
        [ "${total:-0}" = 0 ] || printf '      %-42s %s\n' "$title" "${line#test result: }" ;;
      'test '*' ... FAILED'*) printf '%s\n' "$line"; count=$((count + 1)) ;;
      'test '*' ... '*) count=$((count + 1)) ;;
      failures:) failing=yes; printf '%s\n' "$line" ;;
      SKIPPED:* | skipped:* | error* | warning:*) printf '%s\n' "$line" ;;
      *) [ -z "$failing" ] || printf '%s\n' "$line" ;;
    esac
    if [ $((SECONDS - told)) -ge 20 ]; then
      told=$SECONDS
      printf '      %-42s %d of %s after %d s\n' "$title" $count "${total:-?}" $((SECONDS - began))
    fi
  done
}
