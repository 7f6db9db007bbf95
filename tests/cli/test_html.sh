#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make html`: every page of the manual and of docs/ is there, links lead somewhere, a broken one is named
# and no folder is left then, and two runs give the same bytes.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
for tool in cmark-gfm mandoc; do
    if ! command -v $tool >/dev/null; then
        echo "no $tool: skipped"
        exit 77
    fi
done

# A copy without the rest of the sources, in which links can be broken. What pages link to in other
# folders comes with it.
mkdir -p source/contrib source/cli
for path in docs cli/man contrib/site contrib/parallel.md contrib/slurm contrib/python/examples \
    plots/sample-speedup.svg examples theory/README.md theory/certify-demo-1.svg theory/certify-demo-0.6.svg \
    live/demo/README.md contrib/real_model tests/bench/README.md \
    tests/fuzz/README.md tests/gpu/README.md tests/validation contrib/container README.md NEWS.md ARCHITECTURE.md \
    CONTRIBUTING.md SECURITY.md; do
    [ -e "$top/$path" ] || continue
    mkdir -p "source/$(dirname $path)"
    cp -r "$top/$path" "source/$path"
done
chmod -R u+w source
build() {
    sh source/contrib/site/make.sh source site >out 2>err
}

if build && [ "$(cat out)" = site/index.html ]; then ok; else not_ok "the site: $(cat err)"; fi
missing=
for file in "$top"/docs/*.md; do
    name=${file##*/}
    grep -q "<h1 id=" "site/docs/${name%.md}.html" || missing="$missing $name"
done
for file in "$top"/cli/man/*.[157]; do
    grep -q 'id="NAME"' "site/man/${file##*/}.html" || missing="$missing ${file##*/}"
done
if [ -z "$missing" ]; then ok; else not_ok "pages:$missing"; fi
if grep -q 'id="1-how-much-would-n-gram-speculation-save-on-my-answers"' site/docs/cookbook.html &&
    grep -q 'href="../man/draftscope-methods.7.html"' site/man/draftscope-sim.1.html; then
    ok
else
    not_ok "anchors of headings, links between manual pages"
fi

if grep -q '<code><span class="option">--json-schema</span></code>' site/docs/results.html &&
    grep -q '<b class="option">--num-drafts</b>' site/man/draftscope-sweep.1.html &&
    grep -q '>draftscope sim --json-schema &gt;sim.schema.json$' site/docs/results.html; then
    ok
else
    not_ok "options: on one line in a text, and as they are in an example"
fi

mv site first
build
if diff -r first site; then ok; else not_ok "two runs differ"; fi
rm -rf site

# The messages name the page and the link.
printf '\n[a](metrics.md#no-such-heading) and [b](nowhere.md)\n' >>source/docs/faq.md
if ! build && grep -q '^docs/faq.html: .*metrics.html#no-such-heading leads nowhere' out &&
    grep -q '^docs/faq.html: .*nowhere.html leads nowhere' out && [ ! -e site ] && [ ! -e site.new ]; then
    ok
else
    not_ok "broken links: $(cat out err)"
fi

mkdir empty
if ! PATH=$PWD/empty /bin/sh source/contrib/site/make.sh source site >out 2>err; then ok; else not_ok "no tools"; fi
summary
