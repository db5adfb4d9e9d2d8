# shellcheck shell=bash
# Which PHP has known critical holes, by the table of crates/php-floor. Sourced, not run, by tools that have `say` and `die`.
#
# REGENT_OLD_PHP=yes says that such a PHP is taken for tests alone; whatever is made with it is marked.

floor_table=$(dirname "${BASH_SOURCE[0]}")/../crates/php-floor/floor.txt
# The file that marks a PHP which is for tests alone.
old_php_mark=FOR-TESTS-ALONE

# floor_line VERSION: the line of its branch. Of a branch that is older than all of the table, the line of the oldest: nobody
# mends it any more. Of one that is newer than all, nothing.
floor_line() {
  awk -v version="$1" '
    BEGIN { split(version, wanted, ".") }
    $1 == "branch" {
      split($2, number, ".")
      order = number[1] * 1000 + number[2]; own = wanted[1] * 1000 + wanted[2]
      if (order == own) { line = $0; exit }
      if (own < order && (!least || order < least)) { least = order; older = $0 } else if (order < own) newer = 1
    }
    END { print line ? line : newer ? "" : older }
  ' "$floor_table"
}

# php_floor VERSION: the lowest PHP without known critical holes that takes its place.
php_floor() { floor_line "$1" | cut -d ' ' -f 3; }

# is_older_php VERSION OTHER: release candidates and builds between releases come before the release.
is_older_php() {
  local one other
  one=$(release_order "$1") other=$(release_order "$2")
  [ "$one" != "$other" ] && [ "$(printf '%s\n' "$one" "$other" | sort -V | head -n 1)" = "$one" ]
}

release_order() { sed -E 's/[-~]?(alpha|beta|RC|rc|dev)/~\1/' <<<"$1"; }

php_is_below_floor() {
  local floor
  floor=$(php_floor "$1")
  [ -n "$floor" ] && is_older_php "$1" "$floor"
}

# old_php VERSION: in words, what is wrong with one that is below.
old_php() {
  local floor holes
  read -r _ _ floor holes _ <<<"$(floor_line "$1")"
  echo "PHP $1 has known critical holes (${holes//,/, }): the lowest version without is $floor"
}

# check_php_floor VERSION WAY…: ends the tool, with what is wrong and the ways out, if this PHP has known critical holes and is not
# for tests alone.
check_php_floor() {
  local version=$1
  shift
  php_is_below_floor "$version" || return 0
  if [ "${REGENT_OLD_PHP:-}" = yes ]; then
    say "PHP $version is below $(php_floor "$version") and has known critical holes: for tests alone (REGENT_OLD_PHP=yes)"
    return
  fi
  die "$(old_php "$version")" "$@" "REGENT_OLD_PHP=yes takes it for tests alone, and marks what is made with it."
}
