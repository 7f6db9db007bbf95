#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that every link of the pages in a folder leads to a file in it, and every anchor to an element.
# Usage: check_links.sh FOLDER. Prints each broken link; the exit code is 1 when there is one.
set -eu
cd "$1"
# Names of pages have no blanks.
# shellcheck disable=SC2046
awk '
function normal(path, parts, n, i, out, depth) {
    n = split(path, parts, "/")
    depth = 0
    for (i = 1; i <= n; i++) {
        if (parts[i] == "..") depth--
        else if (parts[i] != "." && parts[i] != "") out[++depth] = parts[i]
    }
    path = ""
    for (i = 1; i <= depth; i++) path = path (i > 1 ? "/" : "") out[i]
    return path
}
function exists(file, line, there) {
    if (!(file in known)) {
        there = (getline line < file)
        close(file)
        known[file] = there >= 0
    }
    return known[file]
}
{
    rest = $0
    while (match(rest, / id="[^"]*"/)) {
        ids[FILENAME "#" substr(rest, RSTART + 5, RLENGTH - 6)] = 1
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = $0
    while (match(rest, / (href|src)="[^"]*"/)) {
        link = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        sub(/^[^"]*"/, "", link)
        sub(/"$/, "", link)
        if (link !~ /^(https?|mailto):/) {
            from[++count] = FILENAME
            to[count] = link
        }
    }
}
END {
    for (i = 1; i <= count; i++) {
        hash = to[i] ~ /#/ ? substr(to[i], index(to[i], "#")) : ""
        file = hash == "" ? to[i] : substr(to[i], 1, index(to[i], "#") - 1)
        folder = from[i]
        sub(/[^\/]*$/, "", folder)
        file = file == "" ? from[i] : normal(folder file)
        if (!exists(file) || (hash != "" && !((file hash) in ids))) {
            print from[i] ": the link " to[i] " leads nowhere"
            bad = 1
        }
    }
    print count " links checked" > "/dev/stderr"
    exit bad
}' $(find . -name '*.html' | sed 's|^\./||' | LC_ALL=C sort)
