#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds Debian packages of a tarball of `make dist`, and lets lintian judge them: an error of lintian
# is an error here. Usage: build.sh SOURCE_FOLDER TARBALL OUTPUT_FOLDER. `make deb` calls it. It installs
# what it needs (contrib/setup.sh). The tests do not run (`make check` runs them) unless
# DEB_BUILD_OPTIONS is set without nocheck. DEBFULLNAME and DEBEMAIL name another maintainer.
set -eu
src=$(cd "$1" && pwd) tarball=$2 out=$3
sh "$src/contrib/setup.sh" build-essential debhelper dpkg-dev fakeroot lintian cmark-gfm mandoc
version=$(basename "$tarball" .tar.gz)
version=${version#draftscope-}
SOURCE_DATE_EPOCH=$(sh "$src/contrib/source_date.sh")
export SOURCE_DATE_EPOCH

rm -rf "$out"
mkdir -p "$out/build"
out=$(cd "$out" && pwd)
cp "$tarball" "$out/build/draftscope_$version.orig.tar.gz"
cd "$out/build"
tar -xzf "draftscope_$version.orig.tar.gz"
cd "draftscope-$version"
cp -R contrib/debian debian
rm debian/build.sh
if [ -n "${DEBFULLNAME:-}" ] && [ -n "${DEBEMAIL:-}" ]; then
    sed -i "s/^Maintainer: .*/Maintainer: $DEBFULLNAME <$DEBEMAIL>/" debian/control
fi
sh debian/copyright.sh >debian/copyright
rm debian/copyright.sh
{
    echo "draftscope ($version-1) bookworm; urgency=medium"
    printf '\n  * Version %s; NEWS.md lists what is new.\n\n' "$version"
    echo " -- $(sed -n 's/^Maintainer: //p' debian/control)  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
} >debian/changelog
DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-"nocheck noautodbgsym"} dpkg-buildpackage -us -uc -rfakeroot
cd "$out"
mv build/*.deb build/*.dsc build/*.changes build/*.buildinfo build/draftscope_*.tar.* .
rm -rf build
# Packages for oneself close no bug of Debian.
lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
    --tag-display-limit 0 ./*.changes
ls ./*.deb
