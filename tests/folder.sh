#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a folder and prints its path, which has no blanks, as configure, libtool and pkg-config refuse them:
# in TMPDIR or, if that has some, in the current folder.
folder=${TMPDIR:-/tmp}
case $folder in *[[:blank:]]*) folder=$(pwd) ;; esac
exec mktemp -d "$folder/draftscope-test.XXXXXX"
