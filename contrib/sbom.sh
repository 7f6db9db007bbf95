#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the software bill of materials of a build as SPDX 2.3 (JSON): the programs and the library with
# their SHA-256, the shared libraries that they need or open, and for each the Debian package that it
# comes from with version and license. Of the CUDA toolkit, the version is that in its headers. What is
# unknown is NOASSERTION.
# Usage: sbom.sh SOURCE_FOLDER VERSION BUILD_FOLDER. `make sbom` calls it. It needs readelf and ldconfig.
set -eu
src=$(cd "$1" && pwd) version=$2
cd "$3"
PATH=$PATH:/usr/sbin:/sbin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/links" >"$work/opened"
date=$(LC_ALL=C date -u -d "@$(sh "$src/contrib/source_date.sh")" +%Y-%m-%dT%H:%M:%SZ)

# The file of a program or library that libtool built: in .libs, or here when it needs no wrapper.
built() { # name
    for file in ".libs/$1" "$1"; do
        if [ -f "$file" ] && [ "$(head -c 4 "$file" | tail -c 3)" = ELF ]; then
            readlink -f "$file"
            return
        fi
    done
}

# Files that were built, and from the files to the libraries that they need.
for name in draftscope draftscope-live libdraftscope.so libdraftscope-cuda.so; do
    file=$(built "$name")
    [ -n "$file" ] || continue
    printf '%s\t%s\n' "$name" "$(sha256sum "$file" | cut -c 1-64)" >>"$work/files"
    readelf -d "$file" | sed -n '/libdraftscope/d; s/.*(NEEDED).*\[\(.*\)\].*/\1/p' |
        while IFS= read -r library; do printf '%s\t%s\tDYNAMIC_LINK\n' "$name" "$library"; done >>"$work/links"
done
[ -s "$work/files" ] || {
    echo "sbom: nothing is built in $PWD; run make first" >&2
    exit 1
}
# OpenBLAS is opened when it is needed.
openblas=$(sed -n 's/.*-DOPENBLAS_SONAME=\\*"\([^"\\]*\).*/\1/p' Makefile config.status 2>/dev/null | head -n 1)
if [ -n "$openblas" ] && grep -q '^draftscope-live' "$work/files"; then
    printf 'draftscope-live\t%s\tRUNTIME_DEPENDENCY_OF\n' "$openblas" >>"$work/links"
fi
# The kernels are a library of their own, with the CUDA runtime in it; it opens cuBLAS when it is needed.
cuda=$(sed -n 's/^CUDA_DIR = //p' Makefile 2>/dev/null)
header() { # header of the toolkit, macro: its value
    sed -n "s/^#define  *$2  *\([0-9]*\).*/\1/p" "$cuda/include/$1" | head -n 1
}
toolkit_version() { # library
    case $1 in
    libcudart_static) header cuda_runtime_api.h CUDART_VERSION | awk '{ printf "%d.%d\n", $1 / 1000, $1 % 1000 / 10 }' ;;
    libcublas.so.*)
        echo "$(header cublas_api.h CUBLAS_VER_MAJOR).$(header cublas_api.h CUBLAS_VER_MINOR).$(header cublas_api.h CUBLAS_VER_PATCH)"
        ;;
    *) echo NOASSERTION ;;
    esac
}
if grep -q '^libdraftscope-cuda' "$work/files"; then
    printf '%s\t%s\t%s\n' draftscope-live libdraftscope-cuda.so DYNAMIC_LINK \
        libdraftscope-cuda.so libcudart_static STATIC_LINK \
        libdraftscope-cuda.so "libcublas.so.$(header cublas_api.h CUBLAS_VER_MAJOR)" RUNTIME_DEPENDENCY_OF >>"$work/links"
fi

# The license of a library, as SPDX writes it: that of `Files: *` in the copyright file of its Debian
# package where that is one license, else what its authors declare.
license() { # package, library
    found=$(awk '
        /^Files:/ { all = $2 == "*" && NF == 2 }
        all && /^License:/ { sub(/^License: */, ""); print; exit }' "/usr/share/doc/$1/copyright" 2>/dev/null || :)
    case $found in
    MIT | Expat) echo MIT ;;
    BSD-3-[Cc]lause) echo BSD-3-Clause ;;
    [Zz]lib) echo Zlib ;;
    *)
        case $2 in
        libc.so.* | libm.so.* | ld-linux*) echo LGPL-2.1-or-later ;;
        libgomp.so.* | libstdc++.so.* | libgcc_s.so.*) echo GPL-3.0-or-later WITH GCC-exception-3.1 ;;
        libasan.so.* | libubsan.so.* | libomp.so.*) echo Apache-2.0 WITH LLVM-exception ;;
        libgsl.so.* | libgslcblas.so.*) echo GPL-3.0-or-later ;;
        libpcre2-8.so.*) echo BSD-3-Clause ;;
        libzstd.so.*) echo BSD-3-Clause OR GPL-2.0-only ;;
        libcudart_static | libcublas.so.*) echo LicenseRef-NVIDIA-CUDA ;;
        *) echo NOASSERTION ;;
        esac
        ;;
    esac
}

cut -f 2 "$work/links" | grep -v '^libdraftscope' | LC_ALL=C sort -u | while IFS= read -r library; do
    path=$(ldconfig -p | sed -n "s|^[[:space:]]*$library (.*x86-64.*) => ||p; s|^[[:space:]]*$library ([^)]*) => ||p" |
        head -n 1)
    package=NOASSERTION number=$(toolkit_version "$library") licensed=$(license NOASSERTION "$library")
    if [ -n "$path" ] && command -v dpkg-query >/dev/null; then
        found=$(dpkg-query -S "$path" "$(readlink -f "$path")" 2>/dev/null | head -n 1 | sed 's/: .*//; s/:.*//')
        if [ -n "$found" ]; then
            package=$found number=$(dpkg-query -W -f '${Version}\n' "$found" | head -n 1) licensed=$(license "$found" "$library")
        fi
    fi
    printf '%s\t%s\t%s\t%s\n' "$library" "$package" "$number" "$licensed"
done >"$work/libraries"

awk -F '\t' -v version="$version" -v date="$date" -v files="$work/files" -v libraries="$work/libraries" '
function id(text) {
    gsub(/[^A-Za-z0-9.-]/, "-", text)
    return "SPDXRef-" text
}
function separator() { printf "%s", first++ ? ",\n" : "" }
BEGIN {
    while ((getline line < files) > 0) { split(line, f, "\t"); name[++n] = f[1]; sum[n] = f[2]; all = all f[2] }
    print "{\n  \"spdxVersion\": \"SPDX-2.3\",\n  \"dataLicense\": \"CC0-1.0\",\n  \"SPDXID\": \"SPDXRef-DOCUMENT\","
    print "  \"name\": \"draftscope-" version "\","
    print "  \"documentNamespace\": \"https://spdx.org/spdxdocs/draftscope-" version "-" substr(sum[1], 1, 32) "\","
    print "  \"creationInfo\": {\"created\": \"" date "\", \"creators\": [\"Tool: draftscope-sbom-" version "\"]},"
    print "  \"packages\": ["
    for (i = 1; i <= n; i++) {
        separator()
        own = name[i] ~ /^draftscope-live|-cuda/ ? "Apache-2.0" : "GPL-3.0-or-later AND Apache-2.0"
        printf "    {\"name\": \"%s\", \"SPDXID\": \"%s\", \"versionInfo\": \"%s\", ", name[i], id(name[i]), version
        printf "\"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"%s\", ", own
        printf "\"licenseDeclared\": \"%s\", \"copyrightText\": \"draftscope authors\", ", own
        printf "\"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"%s\"}]}", sum[i]
    }
    while ((getline line < libraries) > 0) {
        split(line, f, "\t")
        separator()
        printf "    {\"name\": \"%s\", \"SPDXID\": \"%s\", \"versionInfo\": \"%s\", ", f[1], id(f[1]), f[3]
        printf "\"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", "
        printf "\"licenseDeclared\": \"%s\", \"copyrightText\": \"NOASSERTION\"", f[4]
        if (f[4] ~ /NVIDIA/)
            nvidia = 1
        if (f[2] != "NOASSERTION") {
            printf ", \"sourceInfo\": \"Debian package %s %s\", \"externalRefs\": [{\"referenceCategory\": ", f[2], f[3]
            purl = f[3]
            gsub(/\+/, "%2B", purl); gsub(/:/, "%3A", purl); gsub(/~/, "%7E", purl)
            printf "\"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": \"pkg:deb/debian/%s@%s\"}]", f[2], purl
        }
        printf "}"
    }
    print "\n  ],"
    if (nvidia) {
        print "  \"hasExtractedLicensingInfos\": [{\"licenseId\": \"LicenseRef-NVIDIA-CUDA\", \"name\": \"CUDA Toolkit EULA\","
        print "    \"extractedText\": \"End User License Agreement of the NVIDIA CUDA Toolkit\","
        print "    \"seeAlsos\": [\"https://docs.nvidia.com/cuda/eula/index.html\"]}],"
    }
    print "  \"relationships\": ["
    first = 0
    for (i = 1; i <= n; i++) {
        separator()
        printf "    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", "
        printf "\"relatedSpdxElement\": \"%s\"}", id(name[i])
    }
}
{
    separator()
    if ($3 ~ /_LINK$/)
        printf "    {\"spdxElementId\": \"%s\", \"relationshipType\": \"%s\", \"relatedSpdxElement\": \"%s\"}", id($1), $3, id($2)
    else
        printf "    {\"spdxElementId\": \"%s\", \"relationshipType\": \"%s\", \"relatedSpdxElement\": \"%s\"}", id($2), $3, id($1)
}
END { print "\n  ]\n}" }' "$work/links"
