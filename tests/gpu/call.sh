#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A first contact with a GPU, in two calls on one machine, from what prepare.sh has made; it prints them.
# Usage, in the root of the source: OUT=DIR sh tests/gpu/call.sh a|b
# a: unpacks .gpu/b.tar.xz and runs the checks that everything else depends on (190 s). Needs .gpu/m1 as
#    well, which it keeps for b, because both parts of the model do not travel at once.
# b: runs PyTorch, SmolLM2 and the replays of recorded drafts (410 s). Needs .gpu/m2, the wheel of gguf
#    and the scripts of contrib/real_model.
# OUT gets the archive of each. DEVICE=cpu rehearses both; ROOT (/tmp) is where the bundle is unpacked.
# Exit codes are those of run.sh; 3 also: a part is missing or damaged, in one line.
set -u
root=${ROOT:-/tmp} device=${DEVICE:-cuda} here=$PWD/.gpu bundle=${ROOT:-/tmp}/draftscope-gpu
fail() { # code, what
    echo "call.sh: $2" >&2
    exit "$1"
}
need() { # file, where it comes from
    [ -e "$1" ] || fail 3 "$1 is missing: $2"
}
case ${1:-} in
a) only=ops-quick,bench,profile-llama-3-8b-short,fixtures,lossless-tree,replay-llama-2-7b ;;
b)
    only=peer-graph,real-gsm8k,real-transformers,peer-transformers,replay-specbench-eagle,replay-spectr
    only=$only,selection-greedy,ops-full,replay-specbench-sps-68m,real-humaneval,sanitizer-memcheck
    ;;
*) fail 2 "a or b is expected" ;;
esac
[ -d "${OUT:-}" ] || fail 2 "OUT is to name the folder that gets the archives"
seconds() {
    echo "call.sh: $(date -u +%T) $*"
}
case $1 in
a)
    need .gpu/b.tar.xz "tests/gpu/prepare.sh makes it"
    seconds "unpacking"
    rm -rf "$bundle" "$root/r1" "$root/r2"
    said=$(python3 -W ignore -m tarfile -e .gpu/b.tar.xz "$root" 2>&1 >/dev/null) ||
        fail 3 ".gpu/b.tar.xz cannot be unpacked into $root: $(echo "$said" | tail -n 1)"
    cp .gpu/m1 "$root/m1" 2>/dev/null || {
        rm -f "$root/m1"
        echo "call.sh: .gpu/m1 is missing, or $root has no room for it: call b will have no model" >&2
    }
    {
        nvidia-smi
        lscpu
        python3 --version
    } >"$OUT/env.txt" 2>&1
    seconds "checks"
    sh "$bundle/run.sh" --device "$device" --minutes 3.3 --out "$root/r1" --archive "$OUT/first.tar.gz" \
        --only $only
    ;;
b)
    need "$bundle/run.sh" "call a unpacks it; on a machine that went away, repeat call a"
    seconds "model and packages"
    rm -rf "$bundle/real_model" "$bundle/smollm2.gguf" && mkdir "$bundle/real_model" || exit 3
    cp "$here"/*.py "$bundle/real_model/" || fail 3 "peer.py and validate.py are missing in .gpu"
    if [ -e "$root/m1" ] && [ -e .gpu/m2 ]; then
        cat "$root/m1" .gpu/m2 >"$bundle/smollm2.gguf" || rm -f "$bundle/smollm2.gguf"
    else # the checks without it go on
        echo "call.sh: $root/m1 or .gpu/m2 is missing: no model" >&2
    fi
    python3 -c 'import gguf' 2>/dev/null ||
        python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade \
            --target "$root/site" .gpu/gguf-*.whl || echo "call.sh: the package gguf is missing" >&2
    PYTHONPATH=$root/site${PYTHONPATH:+:$PYTHONPATH}
    export PYTHONPATH
    seconds "checks"
    sh "$bundle/run.sh" --device "$device" --minutes 7 --out "$root/r2" --archive "$OUT/second.tar.gz" \
        --skip-passed "$root/r1" --only $only
    ;;
esac
code=$?
seconds "done, exit code $code"
exit $code
