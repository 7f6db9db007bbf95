#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the documentation as a folder of HTML pages that works from the file system: the front page,
# docs/, the manual pages, and what they link to in the source folder. It ends with an error when a
# link leads nowhere. Usage: make.sh SOURCE_FOLDER OUTPUT_FOLDER. `make html` calls it.
# It needs cmark-gfm and mandoc.
set -eu
src=$(cd "$1" && pwd) out=$2 site=$(cd "$1/contrib/site" && pwd)
for tool in cmark-gfm mandoc; do
    command -v "$tool" >/dev/null || {
        echo "make html: $tool is not installed (Debian: apt-get install cmark-gfm mandoc)" >&2
        exit 1
    }
done
# What is half written has another name than what is finished.
new=$out.new
rm -rf "$new"
mkdir -p "$new/man"
new=$(cd "$new" && pwd)
trap 'rm -rf "$new"' EXIT
nav=$new/.nav wanted=$new/.wanted
: >"$wanted"
manual=' '
for page in "$src"/cli/man/draftscope.1 "$src"/cli/man/draftscope-*.[157]; do
    manual="$manual${page##*/} "
done

# The first heading of a Markdown file.
title() {
    sed -n 's/^# //p' "$1" | head -n 1
}

entry() { # path on the site, text
    printf '<a href="%s">%s</a>\n' "$1" "$2"
}

{
    echo '<b>draftscope</b>'
    entry index.html Overview
    entry man/draftscope-tutorial.7.html Tutorial
    entry docs/cookbook.html Cookbook
    echo '<b>Guides</b>'
    for page in data metrics results methods engines costs serving library python validation faq limits; do
        entry docs/$page.html "$(title "$src/docs/$page.md" | sed 's/:.*//')"
    done
    echo '<b>Manual</b>'
    for page in $manual; do
        case $page in *tutorial*) ;; *) entry "man/$page.html" "${page%.?}(${page##*.})" ;; esac
    done
    echo '<b>Project</b>'
    entry NEWS.html News
    entry ARCHITECTURE.html Architecture
    entry CONTRIBUTING.html Contributing
    entry SECURITY.html Security
} >"$nav"
printf '%s\n' ARCHITECTURE.html CONTRIBUTING.html SECURITY.html >"$wanted"

# "a/b/c.html" is two folders below the root: ../../
upwards() {
    echo "$1" | sed 's|[^/]*$||; s|[^/]*/|../|g'
}

page() { # path on the site, title, folder of the source, further variables... <body
    path=$1 heading=$2 folder=$3
    shift 3
    mkdir -p "$(dirname "$new/$path")"
    awk -v top="$(upwards "$path")" -v here="$path" -v title="$heading" -v folder="$folder" \
        -v man="$manual" -v nav="$nav" -v wanted="$wanted.more" "$@" -f "$site/page.awk" \
        >"$new/$path"
    cat "$wanted.more" >>"$wanted" 2>/dev/null || :
    rm -f "$wanted.more"
}

markdown() { # source file, path on the site
    folder=$(dirname "${1#"$src"/}")/
    cmark-gfm -e table -e autolink "$1" | page "$2" "$(title "$1")" "$folder"
}

markdown "$site/index.md" index.html
for file in "$src"/docs/*.md "$src"/NEWS.md; do
    path=${file#"$src"/}
    markdown "$file" "${path%.md}.html"
done
for name in $manual; do
    mandoc -Thtml -O fragment "$src/cli/man/$name" |
        page "man/$name.html" "${name%.?}(${name##*.})" '' -v manual=1
done

# What the pages link to and what is not there yet: further Markdown, a folder, or a file as it is.
while sort -u "$wanted" >"$wanted.all" && : >"$wanted" && [ -s "$wanted.all" ]; do
    while IFS= read -r path; do
        [ ! -e "$new/$path" ] || continue
        source=$src/${path%.html}.md folder=$src/${path%/index.html}
        if [ -f "$source" ]; then
            markdown "$source" "$path"
        elif [ -d "$folder" ]; then
            for file in "$folder"/*.*; do
                entry "${file##*/}" "${file##*/}" | sed 's/^/<p>/; s/$/<\/p>/'
            done | page "$path" "${path%/index.html}" "${path%index.html}"
        elif [ -f "$src/$path" ]; then
            mkdir -p "$(dirname "$new/$path")"
            cp "$src/$path" "$new/$path"
        fi
    done <"$wanted.all"
done
cp "$site/style.css" "$new/"
rm -f "$nav" "$wanted" "$wanted".*
sh "$site/check_links.sh" "$new"
rm -rf "$out"
mv "$new" "$out"
trap - EXIT
echo "$out/index.html"
