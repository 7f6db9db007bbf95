#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the missing Debian packages that the build, the tests and the figures need, and prints
# their names first. It does nothing on systems without dpkg; README.md has the list for them.
set -eu

packages="gcc g++ libc6-dev make autoconf automake libtool pkg-config
 libjansson-dev libpcre2-dev zlib1g-dev libzstd-dev libutf8proc-dev libgsl-dev librandom123-dev
 libopenblas-dev libcmocka-dev libglpk-dev gnuplot-nox $*"

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "setup: not a Debian system: the packages needed are listed in README.md"
    exit 0
fi

missing=
for p in $packages; do
    state=$(dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>/dev/null || true)
    case $state in
        ii*) ;;
        *) missing="$missing $p" ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "setup: these packages are missing, and there is no sudo; as root, run:" >&2
        echo "  apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "setup: installing Debian packages:$missing"
$as_root apt-get update -qq
DEBIAN_FRONTEND=noninteractive $as_root ${as_root:+env DEBIAN_FRONTEND=noninteractive} \
    apt-get install -y -qq --no-install-recommends $missing
