#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian packages and the container: the packaging files agree with the sources, the copyright file with
# REUSE.toml and the SPDX lines, the Dockerfile runs the two scripts and nothing else.
# DSC_TEST_FRESH=yes, as root with debootstrap and a network (some minutes): the packages of `make deb` are
# installed in a fresh Debian 12 by the Dockerfile's script, and the program runs there as users meet it.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
debian=$top/contrib/debian

# --- packaging files ---------------------------------------------------------------------------
version=$("$draftscope" --version | sed 's/.* //')
if grep -q "^AC_INIT(\[draftscope\], \[$version\]" "$top/configure.ac" &&
    grep -q "^version: $version\$" "$top/CITATION.cff" && grep -q "^## $version" "$top/NEWS.md"; then
    ok
else
    not_ok "version $version is not that of configure.ac, CITATION.cff and NEWS.md"
fi
for library in gsl jansson openblas pcre2 random123 utf8proc zstd; do
    if grep -q "^ lib$library-dev,\$" "$debian/control" && grep -q "lib$library-dev" "$top/contrib/setup.sh"; then
        ok
    else
        not_ok "lib$library-dev is not in Build-Depends and in setup.sh"
    fi
done
# dpkg-buildpackage refuses to run without it, and a bare Debian lacks it.
if grep -q 'setup.sh" build-essential ' "$debian/build.sh"; then ok; else not_ok "build.sh: no build-essential"; fi
# Every package has files, and every list of files a package.
sed -n 's/^Package: //p' "$debian/control" | sort >packages
for list in "$debian"/*.install "$debian"/*.docs; do basename "$list" | sed 's/\.[a-z]*$//'; done | sort >lists
if [ -s packages ] && cmp -s packages lists; then ok; else not_ok "packages: $(diff packages lists)"; fi
for completion in bash fish zsh; do
    if grep -q "^usr/share/$completion" "$debian/draftscope.install"; then ok; else not_ok "completion of $completion"; fi
done

# --- copyright ---------------------------------------------------------------------------------
mkdir copy copy/LICENSES copy/a
cp "$top"/LICENSES/*.txt copy/LICENSES/
tag=SPDX-License-Ident''ifier
printf '/* %s: GPL-3.0-or-later */\n' $tag >copy/a/g.c
printf '# %s: Apache-2.0\n' $tag >copy/a/b.sh
cat >copy/REUSE.toml <<'END'
version = 1
[[annotations]]
path = ["data/**", "more/*.txt",
        "third/x"]
SPDX-FileCopyrightText = "2021 Somebody"
SPDX-License-Identifier = "MIT"
[[annotations]]
path = ["own/**"]
SPDX-FileCopyrightText = "draftscope authors"
SPDX-License-Identifier = "Apache-2.0"
END
(cd copy && sh "$debian/copyright.sh") >copyright 2>err || not_ok "copyright.sh: $(cat err)"
tr '\n' '|' <copyright >line
if grep -qF '|Files: a/g.c|Copyright: draftscope authors|License: GPL-3.0-or-later|' line &&
    grep -qF '|Files: data/*| more/*.txt| third/x|Copyright: 2021 Somebody|License: MIT|' line &&
    ! grep -q '^Files: own' copyright && [ "$(grep -c '^License: MIT$' copyright)" = 2 ]; then
    ok
else
    not_ok "copyright: $(cat copyright)"
fi
(cd "$top" && sh "$debian/copyright.sh") >copyright
if grep -q '^ base/statistics.h$' copyright && grep -q '^Files: live/demo/\*.jsonl$' copyright; then ok; else
    not_ok "copyright of the sources: $(head -n 30 copyright)"
fi

# --- Dockerfile --------------------------------------------------------------------------------
container=$top/contrib/container
grep '^RUN ' "$container/Dockerfile" >runs
printf '%s\n' 'RUN sh /source/contrib/container/build.sh /source' 'RUN sh /packages/install.sh /packages' >wanted
if cmp -s wanted runs; then ok; else not_ok "the Dockerfile runs: $(cat runs)"; fi
# What it copies is there, and install.sh is what runs in the second stage.
grep -q '^COPY contrib/container/install.sh /packages/install.sh$' "$container/Dockerfile" || not_ok "install.sh is not copied"
if grep -q '^FROM debian:bookworm$' "$container/Dockerfile" &&
    [ "$(grep -c '^FROM debian:bookworm' "$container/Dockerfile")" = "$(grep -c '^FROM' "$container/Dockerfile")" ]; then
    ok
else
    not_ok "another system than debootstrap's below"
fi
for script in build install; do check "$script.sh" sh -n "$container/$script.sh"; done

# --- a fresh Debian ----------------------------------------------------------------------------
packages=${DSC_TEST_DEBS:-${draftscope%/*}/deb}
if [ "${DSC_TEST_FRESH:-}" != yes ]; then
    skip "a fresh Debian" "set DSC_TEST_FRESH=yes"
    summary
    exit
fi
PATH=$PATH:/usr/sbin
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "not root, or no debootstrap: skipped"
    exit 77
fi
set -- "$packages"/draftscope_*.deb
if [ ! -f "$1" ]; then
    echo "no packages in $packages: run make deb: skipped"
    exit 77
fi
root=$work/root
# A root that is there already saves minutes; it is copied, not changed.
if [ -n "${DSC_TEST_ROOT:-}" ]; then
    cp -a "$DSC_TEST_ROOT" "$root"
elif ! debootstrap --variant=minbase bookworm "$root" >debootstrap.log 2>&1; then
    echo "debootstrap failed (no network?): skipped: $(tail -n 1 debootstrap.log)"
    exit 77
fi
# In namespaces of its own, so that its /proc is gone with the command.
inside() { # command...
    # shellcheck disable=SC2016
    unshare --mount --pid --fork sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" env -i \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
}
mkdir "$root/packages"
cp "$packages"/*.deb "$container/install.sh" "$root/packages/"
check "install.sh" inside sh /packages/install.sh /packages
sed 's/^/# /' said | tail -n 12

mkdir "$root/data"
mv "$root/packages" "$root/data/packages"
runs() { # what, script
    if inside sh -c "cd /data && $2" >said 2>&1; then ok; else
        not_ok "in the fresh system: $1"
        tail -n 5 said | sed 's/^/# /'
    fi
}
runs "the sample that is installed" "cp /usr/share/draftscope/sample/rag.jsonl \
    /usr/share/draftscope/sample/tokenizer.json ."
runs "advise" "draftscope advise rag.jsonl --tokenizer tokenizer.json --cost linear:0.020,0.0005 --engine vllm -o rag"
if grep -q 'speculative' said; then ok; else not_ok "advise printed: $(head -n 5 said)"; fi
grep -v '^$' said | head -n 6 | sed 's/^/# /'
runs "sweep and tune" "draftscope trace info rag.dst &&
    draftscope sweep rag.dst --method ngram --num-speculative-tokens 2,4 -o sweep.tsv &&
    draftscope tune rag.dst --method ngram --num-speculative-tokens 2,4"
runs "published figures" "draftscope validate --published spectr-appb leviathan"
runs "live, on the demo models" "cp -r /usr/share/doc/draftscope-live/examples/demo . &&
    draftscope live run --target demo/target --method ngram --prompts demo/prompts.jsonl --requests 1 --max-tokens 8"
runs "live list finds OpenBLAS" "draftscope live list | grep openblas | grep -v 'not found'"
runs "completion files" "test -s /usr/share/bash-completion/completions/draftscope.bash &&
    test -s /usr/share/zsh/vendor-completions/_draftscope &&
    test -s /usr/share/fish/vendor_completions.d/draftscope.fish"
runs "manual pages" "test -s /usr/share/man/man1/draftscope.1.gz && test -s /usr/share/man/man7/draftscope-tutorial.7.gz"
runs "man, pages and the library" "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends man-db gcc libc6-dev pkg-config /data/packages/libdraftscope-dev_*.deb \
    /data/packages/draftscope-doc_*.deb"
runs "man draftscope" "man draftscope | grep -q 'draftscope - ' && man draftscope-live | grep -q OPTIONS"
runs "plot" "draftscope plot length sweep.tsv -o - && draftscope report sweep.tsv -o report.html"
runs "an example of the library" "cc \$(pkg-config --cflags draftscope) \
    /usr/share/doc/libdraftscope-dev/examples/theory.c -o theory \$(pkg-config --libs draftscope) -lm && ./theory"
runs "the pages" "test -s /usr/share/doc/draftscope/html/index.html"
runs "removal" "apt-get purge -y -qq draftscope draftscope-live libdraftscope0 libdraftscope-dev &&
    ! test -e /usr/bin/draftscope && ! test -e /usr/share/draftscope"
summary
