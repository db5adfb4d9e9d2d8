# shellcheck shell=bash
# How `tools/build-php --fast` compiles PHP: once with counters, with which Regent serves real applications for a while, and
# then again with what was counted. Sourced, not run; docs/design/php-fast.md has what was measured of each choice.

# Calls between PHP's own functions go straight to them: nobody puts others in their place.
fast_flags="-O2 -g0 -pipe -fvisibility=hidden -fno-semantic-interposition"
fast_link_flags="-Wl,-Bsymbolic-functions"
# What chooses between implementations while the library is being linked may not count yet (ifunc); pointers do the same later.
fast_configure=(ax_cv_have_func_attribute_ifunc=no)
fast_counting="-fprofile-generate -fprofile-update=prefer-atomic"
# What no application of the training ran is optimised as without a profile, and not for size.
fast_counted="-fprofile-use -fprofile-partial-training -Wno-missing-profile -Wno-coverage-mismatch"
# On one PHP thread, in classic mode and in a worker: see bench/README.md.
fast_training=(apps --applications wordpress,symfony,dokuwiki --servers classic,worker --threads 1 --connections 1
  --rounds 1 --duration 30s)
fast_recipe=("${fast_configure[@]}" "$fast_flags" "$fast_link_flags" "$fast_counting" "$fast_counted" "${fast_training[@]}")
fast_applications='wordpress mariadb symfony dokuwiki'
# Engines that the training starts: one for each application, and Symfony's worker.
fast_engines=4

# Everything that could be missing is looked for before the half hour that this takes.
check_fast() {
  local app tried=$work/compiler
  mkdir -p "$tried"
  echo 'int main(void) { return 0; }' >"$tried/tried.c"
  # shellcheck disable=SC2086 # lists of flags
  (cd "$tried" && cc $fast_flags $fast_counting -c tried.c && cc $fast_counting $fast_link_flags tried.o -o tried && ./tried &&
    [ -s tried.gcda ] && cc $fast_flags $fast_counted -c tried.c) >"$tried/log" 2>&1 || {
    tail -n 5 "$tried/log" >&2
    die "this compiler cannot optimise by a profile: $(cc --version | head -n 1)" \
      "Install gcc 10 or newer as cc, or stay with PHP=zts."
  }
  command -v cargo >/dev/null || die "there is no cargo, which builds the Regent that serves the applications" \
    "Install Rust (https://rustup.rs), then run this again."
  for app in $fast_applications; do
    "$checkout/tools/fetch-app" "$app" >/dev/null || die "$app is missing, and PHP is trained on it" \
      "See its message above; PHP=zts needs no training."
  done
}

# Leaves PHP's objects as they are to be installed.
compile_fast() {
  count_compiled
  # One object of each file, position independent, is for library and programs: half the time of a compilation.
  sed -i 's/^build_old_libs=yes/build_old_libs=no/' "$work/src/libtool"
  step "compiling with counters" counting "$files" make_library "$fast_counting"
  build_trainer
  step "training on applications" training 0 train_php
  use_counts
  step "compiling by what was counted" make "$files" make_library "$fast_counted"
  step "linking the programs" programs 0 make_programs "$fast_counted"
}

make_library() { make -C "$work/src" -j"$(nproc)" PROF_FLAGS="$1" libphp.la build-modules; }

# They are linked of objects beside the library's, by the rules of PHP's Makefile.
make_programs() {
  local objects file
  read -ra objects <<<"$(sed -nE 's/^PHP_(BINARY|CLI|CGI|FASTCGI)_OBJS = //p' "$work/src/Makefile" | tr '\n' ' ')"
  make -C "$work/src" -j"$(nproc)" PROF_FLAGS="$1" "${objects[@]}"
  find "$work/src" -path '*/.libs/*.o' | while read -r file; do ln -sf ".libs/${file##*/}" "${file%/.libs/*}/${file##*/}"; done
  make -C "$work/src" PROF_FLAGS="$1" all
}

# Regent with this PHP, which is installed beside: the paths that are compiled into it are those of its final place.
build_trainer() {
  trained=$work/training$target
  make -C "$work/src" INSTALL_ROOT="$work/training" install-sapi install-modules install-headers install-programs \
    >"$work/training.log" 2>&1 || { tail -n 20 "$work/training.log" >&2; die "the PHP with counters cannot be installed"; }
  sed -i "s|$target|$trained|g" "$trained/bin/php-config"
  mkdir -p "$trained/etc/conf.d"
  write_ini "$trained"
  printf 'extension_dir = "%s"\n' "$("$trained/bin/php-config" --extension-dir)" >>"$trained/etc/php.ini"
  trainer=${CARGO_TARGET_DIR:-$work/cargo}
  step "building the Regent that trains it" trainer 0 build_regent
}

build_regent() {
  export PHP_CONFIG=$trained/bin/php-config CARGO_PROFILE_DEV_DEBUG=0
  cargo build --target-dir "$trainer" --manifest-path "$checkout/Cargo.toml" &&
    cargo build --target-dir "$trainer" --manifest-path "$checkout/bench/Cargo.toml"
}

train_php() {
  PHPRC=$trained/etc "$trainer/debug/regent-bench" "${fast_training[@]}" --regent "$trainer/debug/regent" \
    --checkout "$checkout" --out "$work/measured"
}

# The objects with counters go, and their counts stay: those of all engines, which write them when they end by themselves.
use_counts() {
  local counted engines
  counted=$work/src/Zend/.libs/zend_execute.gcda
  [ -s "$counted" ] || die "the training left no counts" "See $work/training.log"
  engines=$(gcov-dump "$counted" | sed -nE 's/.*OBJECT_SUMMARY runs=([0-9]+).*/\1/p')
  [ "${engines:-$fast_engines}" -ge $fast_engines ] ||
    die "only $engines of $fast_engines engines have left their counts: the others did not end by themselves" \
      "Is the machine very busy? Run this again; what the engines said is in $work/training.log"
  make -C "$work/src" prof-clean >/dev/null
}
