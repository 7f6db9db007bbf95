#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints debian/copyright (DEP-5) of the source folder it is called in: from the SPDX line of each file,
# from REUSE.toml for files that have none, and from LICENSES/. Most files are under the first license,
# Apache-2.0, and share the stanza `Files: *`.
set -eu
tag=SPDX-License-Ident''ifier # in two parts, as this is no such line
cat <<'END'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: draftscope
Comment: The files that use GSL are under GPL-3.0-or-later, and so is the program
 draftscope and the library, which are linked with it.

Files: *
Copyright: draftscope authors
License: Apache-2.0

Files: Makefile.in aclocal.m4 build-aux/* configure m4/l*.m4
Copyright: Free Software Foundation, Inc.
License: autotools
END

# Each line: license, holder, pattern.
{
    grep -rIl --exclude-dir=debian "$tag: " . |
        while IFS= read -r file; do
            license=$(head -n 5 "$file" |
                sed -n "s/.*$tag: \([A-Za-z0-9.-]*\).*/\1/p" | head -n 1)
            case $license in
            '' | Apache-2.0) ;;
            *) printf '%s\tdraftscope authors\t%s\n' "$license" "${file#./}" ;;
            esac
        done
    # A list of paths may take several lines; "**" of REUSE is "*" here, which spans folders.
    awk '
    function flush(n, i, p) {
        if (license != "" && license != "Apache-2.0") {
            n = split(paths, p, ",")
            for (i = 1; i <= n; i++) if (p[i] != "") print license "\t" holder "\t" p[i]
        }
        license = holder = paths = ""
    }
    /^\[\[annotations\]\]/ { flush(); next }
    /^path/ { inside = 1 }
    inside {
        line = $0
        while (match(line, /"[^"]*"/)) {
            path = substr(line, RSTART + 1, RLENGTH - 2)
            gsub(/\*\*/, "*", path)
            paths = paths path ","
            line = substr(line, RSTART + RLENGTH)
        }
        if (/\]/ || !/\[/ && /^path/) inside = 0
    }
    /^SPDX-FileCopyrightText/ { split($0, part, "\""); holder = part[2] }
    /^SPDX-License-Identifier/ { split($0, part, "\""); license = part[2] }
    END { flush() }' REUSE.toml
} | LC_ALL=C sort -u | awk -F '\t' '
    $1 "\t" $2 != last {
        if (last != "") print copyright
        print "\nFiles: " $3
        copyright = "Copyright: " $2 "\nLicense: " $1
        last = $1 "\t" $2
        next
    }
    { print " " $3 }
    END { if (last != "") print copyright }'

for text in LICENSES/*.txt; do
    license=${text#LICENSES/}
    license=${license%.txt}
    common=$(case $license in
    Apache-2.0) echo Apache-2.0 ;;
    CC0-1.0) echo CC0-1.0 ;;
    GPL-3.0-or-later) echo GPL-3 ;;
    esac)
    printf '\nLicense: %s\n' "$license"
    if [ -n "$common" ]; then
        printf ' On Debian systems, the text of this license is in the file\n'
        printf ' /usr/share/common-licenses/%s.\n' "$common"
    else
        sed 's/^$/./; s/^/ /' "$text"
    fi
done
cat <<'END'

License: autotools
 autoconf, automake and libtool generate these files. They may be copied and
 distributed with a program that is built by them, without conditions; the head
 of each file has its terms.
END
