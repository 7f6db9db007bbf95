#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the machine code of the CUDA kernels with kernels.tsv. For the hot ones: loads in flight,
# registers, spills and shared memory. The compiler often issues loads one after another that are
# independent in the source, which no test of results can detect. For all of them: they access no
# data of another kernel before they wait for the previous one, nor read such data through the
# non-coherent path.
#
#   sass.sh [--arch sm_90] [--table] [--expect FILE] [BUILD | FILE.o | FILE.cubin | FILE.cu]...
#
# BUILD is a build folder (default: the current one), whose live/device/cuda/*.lo name the objects.
# A kernel file without an object, or without code for the architecture, is compiled. --table prints
# the table of README.md, which has the hot kernels, instead of the verdicts. The exit code is 0, 1
# if an expectation is broken, 2 for usage, 77 without cuobjdump, nvdisasm or a demangler.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 99
top=$(cd "$here/../.." && pwd) || exit 99
arch=sm_90 table=0 expect=$here/kernels.tsv
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin

usage() {
    echo "usage: sass.sh [--arch sm_90] [--table] [--expect FILE] [BUILD | FILE.o | FILE.cu]..." >&2
    exit 2
}
skip() {
    echo "sass: $*; skipped"
    exit 77
}
while [ $# -gt 0 ]; do
    case $1 in
        --arch | --expect)
            [ $# -ge 2 ] || usage
            if [ "$1" = --arch ]; then arch=$2; else expect=$2; fi
            shift 2
            ;;
        --table)
            table=1
            shift
            ;;
        -*) usage ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || set -- .
[ -r "$expect" ] || {
    echo "sass: cannot read $expect: --expect takes a table such as $here/kernels.tsv" >&2
    exit 2
}

command -v cuobjdump >/dev/null || skip "no cuobjdump on PATH or in CUDA_HOME"
# cuobjdump calls it for -sass.
command -v "${NVDISASM_PATH:-nvdisasm}" >/dev/null || skip "no nvdisasm on PATH or in CUDA_HOME"
for filter in cu++filt c++filt; do
    command -v $filter >/dev/null && break
done
command -v "$filter" >/dev/null || skip "no cu++filt and no c++filt on PATH"

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

compile() { # source: leaves $object
    object=$work/$(basename "$1" .cu).cubin
    command -v nvcc >/dev/null || skip "no machine code of $1 for $arch, and no nvcc to compile it"
    echo "sass: compiling $1 for $arch" >&2
    nvcc -std=c++17 -O3 -arch="$arch" -I"$top" -cubin -o "$object" "$1" || {
        echo "not ok - $1: nvcc does not compile it for $arch"
        exit 1
    }
}
dump() { # object: machine code and resources into $work/code, $work/usage; 1 when there are none
    cuobjdump -arch "$arch" -sass "$1" >"$work/raw" 2>"$work/error" &&
        cuobjdump -arch "$arch" -res-usage "$1" >"$work/raw-usage" 2>>"$work/error" || return 1
    $filter <"$work/raw" >"$work/code"
    $filter <"$work/raw-usage" >"$work/usage"
    grep -q 'Function : ' "$work/code"
}
failed=0
judge() { # name of the kernel file, as in the table
    awk -f "$here/sass.awk" object="$1" arch="$arch" table=$table mode=expect "$expect" \
        mode=usage "$work/usage" mode=code "$work/code" || failed=1
}
files_of() { # the kernel files of the table, for the architecture
    awk -F '\t' -v arch="$arch" '$0 !~ /^#/ && $3 == arch && !seen[$1]++ { print $1 }' "$expect"
}
# The kernel files of the table and of the source, each once.
names() {
    {
        files_of
        for source in "$top"/live/device/cuda/*.cu; do
            [ ! -e "$source" ] || basename "$source" .cu
        done
    } | awk '!seen[$0]++'
}
has_kernels() { # kernel file
    files_of | grep -qxF "$1" || grep -q __global__ "$top/live/device/cuda/$1.cu"
}
# libtool's .lo names the object that it stands for.
object_of() { # build folder, kernel file
    sed -n "s/^[non_]*pic_object='\(.*\.o\)'/\1/p" "$1/live/device/cuda/$2.lo" 2>/dev/null |
        sed "s|^|$1/live/device/cuda/|" | head -n 1
}
[ -n "$(files_of)" ] || {
    echo "not ok - $expect: no row for $arch"
    exit 1
}

if [ $table = 1 ]; then
    printf '| %s ' kernel registers 'spills, stack bytes' 'shared bytes' \
        'loads in flight x bytes' 'grouped loads' loads cp.async MMA FFMA prefetches loop
    printf '|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n'
fi
for path; do
    if [ -d "$path" ]; then
        for name in $(names); do
            object=$(object_of "$path" "$name")
            if [ ! -e "$object" ] || ! dump "$object"; then
                has_kernels "$name" || continue
                compile "$top/live/device/cuda/$name.cu"
                dump "$object" || {
                    echo "not ok - $name: no machine code for $arch"
                    failed=1
                    continue
                }
            fi
            judge "$name"
        done
        continue
    fi
    [ -r "$path" ] || {
        echo "sass: cannot read $path: a build folder, an object or a .cu file is expected" >&2
        exit 2
    }
    name=$(basename "$path" | sed 's/\.[^.]*$//')
    object=$path
    case $path in *.cu) compile "$path" ;; esac
    dump "$object" || {
        echo "not ok - $path: no machine code for $arch: $(head -n 1 "$work/error")"
        exit 1
    }
    judge "$name"
done
exit $failed
