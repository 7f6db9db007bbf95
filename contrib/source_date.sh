#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the time that everything made from this source folder is dated with, in seconds since 1970:
# SOURCE_DATE_EPOCH where it is set, the last commit's time in a clone, and in an unpacked tarball the
# time of its files, which `make dist` gave the same.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
    case $SOURCE_DATE_EPOCH in
    *[!0-9]*)
        echo "SOURCE_DATE_EPOCH is '$SOURCE_DATE_EPOCH', not a number of seconds since 1970" >&2
        exit 1
        ;;
    esac
    echo "$SOURCE_DATE_EPOCH"
elif [ -e .git ]; then
    git -c safe.directory='*' log -1 --format=%ct
else
    stat -c %Y NEWS.md
fi
