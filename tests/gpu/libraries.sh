# SPDX-License-Identifier: Apache-2.0
# Finds the libraries that the programs of a bundle need but do not contain: for run.sh, which sets
# $here and $device and sources this file.
# shellcheck shell=sh disable=SC2154

# Opened by name while a program runs, so that ldd does not list them.
opened_libraries="libcublas.so.13 libcublasLt.so.13"
PATH=$PATH:/usr/sbin:/sbin # of ldconfig

# The folders in which CUDA's libraries are usually installed, one per line.
library_folders() {
    home=${CUDA_HOME:-/usr/local/cuda}
    for folder in "$here/lib" "$home"/lib64 "$home"/lib "$home"/targets/*/lib \
        /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib /usr/local/cuda-*/lib64; do
        echo "$folder"
    done
    # Python packages install them as nvidia/cublas/lib and the like, or all in nvidia/cu13/lib.
    if command -v python3 >/dev/null 2>&1; then
        python3 -c 'import sys; print("\n".join(p for p in sys.path if p))' 2>/dev/null |
            while read -r packages; do
                for folder in "$packages"/nvidia/*/lib; do
                    echo "$folder"
                done
            done
    fi
    for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib64 \
        /usr/lib/*-linux-gnu /usr/lib/wsl/lib; do
        echo "$folder"
    done
}

# Whether the loader finds a library by its name alone.
is_loadable() {
    old_ifs=$IFS
    IFS=:
    for folder in $LD_LIBRARY_PATH; do
        [ -n "$folder" ] && [ -e "$folder/$1" ] && found_at=yes && break
        found_at=
    done
    IFS=$old_ifs
    [ -n "$found_at" ] || ldconfig -p 2>/dev/null | grep -q "[[:space:]]$1 "
}

# Prints the libraries that the programs are linked with and the loader does not find, one name per
# line. A name with GLIBC_ is a version that the C library of this machine lacks.
unlinked() {
    for program in "$here"/bin/*; do
        [ -f "$program" ] && ldd "$program" 2>&1
    done | sed -n 's/^[[:space:]]*\([^ ]*\) => not found.*/\1/p
        s/.*version `\(GLIBC_[0-9.]*\)'"'"' not found.*/\1/p' | sort -u
}
# Adds the libraries that are opened by name on a GPU.
unloadable() {
    unlinked
    case $device in
    cuda*)
        for library in $opened_libraries; do
            is_loadable "$library" || echo "$library"
        done
        ;;
    esac
}

# Sets $program_libraries, the LD_LIBRARY_PATH of the programs: the bundle's folder, and the folders with
# libraries that it lacks, and no others, since other versions of libraries in the same folder would be
# used too. $library_path are these other folders, and $missing the names that are in none. Tools of the
# machine (nvidia-smi, python3, compute-sanitizer) keep their own path: the bundle's libraries are older.
find_libraries() {
    library_path='' missing='' own_path=${LD_LIBRARY_PATH:-}
    LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    add_folders
    program_libraries=$LD_LIBRARY_PATH LD_LIBRARY_PATH=$own_path
    [ -z "$missing" ]
}
add_folders() {
    wanted_libraries=$(unloadable)
    [ -n "$wanted_libraries" ] || return
    folders=$(library_folders)
    for library in $wanted_libraries; do
        ! is_loadable "$library" || continue
        at=$(echo "$folders" | while read -r folder; do
            if [ -e "$folder/$library" ]; then
                echo "$folder"
                break
            fi
        done)
        [ -n "$at" ] || continue
        LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$at
        library_path=$library_path${library_path:+:}$at
    done
    missing=$(unloadable | sort -u | tr '\n' ' ')
    missing=${missing% }
}

# Prints one line about $missing for the user.
say_missing() {
    case $missing in
    *GLIBC_*)
        echo "The C library of this machine is older than the programs, which need $missing:" \
            "build the bundle on a machine with an older one."
        ;;
    *)
        echo "Libraries were not found: $missing. Install cuBLAS of CUDA 13, or set CUDA_HOME to" \
            "the folder whose lib64 has them, or LD_LIBRARY_PATH."
        ;;
    esac
}
