# shellcheck shell=bash
# What tools know of the distribution's packages of PHP. Sourced, not run; it sets ID and the rest of os-release.

ID=
[ ! -r /etc/os-release ] || . /etc/os-release

# php_suites VERSION: the suites that hold this PHP, newest first; nothing if none is known.
php_suites() {
  case $ID-$1 in
    debian-8.2) echo bookworm-security bookworm ;;
    debian-8.4) echo trixie-security trixie ;;
    debian-8.5) echo experimental sid ;;
    debian-8.6) echo experimental sid ;;
    ubuntu-8.3) echo noble-security noble ;;
    ubuntu-8.4) echo questing plucky ;;
    ubuntu-8.5) echo resolute-security resolute ;;
  esac
}

# php_archive VERSION: a source of this PHP that is known by its sum, as `PATH SHA256`; the path is that in a mirror.
php_archive() {
  case $ID-$1 in
    debian-8.4)
      echo pool/main/p/php8.4/php8.4_8.4.24.orig.tar.xz \
        e127be09a8506f4327c5cfa78a614b00d210714484ec215ce0011b4a03c00731 ;;
  esac
}

# The mirror that this system already uses: the first one of its own distribution.
system_mirror() {
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
    sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb +(\[[^]]*\] +)?([^ ]+).*/\2/p' |
    awk -v end="/$ID/?\$" '$0 ~ end && !found { print; found = 1 }'
}

# apt_begin DIRECTORY TYPE MIRROR SUITE: sets `apt` to an apt-get that knows this suite alone, by lists of our own in the
# directory: the system's are untouched, and it needs no root. TYPE is deb or deb-src. apt checks signatures and sums.
apt_begin() {
  local directory=$1 type=$2 uri=$3 suite=$4 components=main
  case $ID-$suite in
    debian-*-security) uri=${uri%/}-security ;;
    ubuntu-*) components="main universe" ;;
  esac
  rm -rf "$directory"
  mkdir -p "$directory/lists/partial" "$directory/archives/partial"
  echo "$type [signed-by=/usr/share/keyrings/$ID-archive-keyring.gpg] $uri $suite $components" >"$directory/sources.list"
  apt=(apt-get -qq -o "Dir::Etc::sourcelist=$directory/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$directory/lists" -o "Dir::Cache::archives=$directory/archives"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=)
}
