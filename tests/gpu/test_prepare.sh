#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests tests/gpu/prepare.sh and call.sh in a source of their own, with a bundle whose run.sh only says
# what it was given: the parts of the model, what each call carries, and parts that are missing or cut.
. "${top_srcdir:-.}/tests/gpu/common.sh"
for program in python3 xz git; do
    command -v $program >/dev/null || {
        echo "no $program: skipped"
        exit 77
    }
done
source=$work/source
mkdir -p "$source/tests/gpu" "$source/contrib/real_model" "$source/.gpu" "$work/build" "$work/data" "$work/o"
cp "$top/tests/gpu/prepare.sh" "$top/tests/gpu/call.sh" "$source/tests/gpu/"
echo 'import' >"$source/contrib/real_model/peer.py"
cp "$source/contrib/real_model/peer.py" "$source/contrib/real_model/validate.py"
git -C "$source" init -q && git -C "$source" add tests contrib
head -c 5000000 /dev/urandom >"$work/model.gguf"
echo wheel >"$source/.gpu/gguf-1-py3-none-any.whl"
touch "$work/build/config.status"
cat >"$work/build/Makefile" <<'END'
gpu-bundle:
	mkdir -p draftscope-gpu
	echo 'echo "$$*"; [ ! -e "$${0%/*}/smollm2.gguf" ] || cat "$${0%/*}/smollm2.gguf" >model; ls "$${0%/*}"; exit $$CODE' >draftscope-gpu/run.sh
	tar -cJf draftscope-gpu.tar.xz draftscope-gpu
END
prepare() { # LIMIT
    LIMIT=$1 DSC_TEST_DATA=$work/data DSC_SMOLLM2=$work/model.gguf sh "$source/tests/gpu/prepare.sh" \
        "$work/build" >"$work/log" 2>&1
}
call() { # a or b
    (cd "$source" && OUT=$work/o DEVICE=cpu ROOT=$work/root CODE=${2:-0} sh tests/gpu/call.sh "$1") >"$work/log" 2>&1
}
last() { # text: the last line of the log says so
    tail -n 1 "$work/log" | grep -q -e "$1"
}

# --- prepare -------------------------------------------------------------------------------------
prepare 67108864 && cat "$source/.gpu/m1" "$source/.gpu/m2" | cmp -s - "$work/model.gguf" &&
    grep -q '^  sh tests/gpu/call.sh a$' "$work/log" && cmp -s "$source/.gpu/b.tar.xz" "$work/build/draftscope-gpu.tar.xz" &&
    [ -z "$(git -C "$source" status --short .gpu)" ]
ok $? "parts that are the model, the bundle, two commands, and nothing for git"
prepare 5500000 && [ "$(wc -c <"$source/.gpu/m2")" -lt 4500000 ]
ok $? "with less to travel, parts of other sizes"
prepare 3000000
[ $? = 1 ] && last '^prepare.sh: bundle .*: more than 3000000 bytes in a call$'
ok $? "a model that does not travel in two calls: exit code 1, one line"
DSC_TEST_DATA='' sh "$source/tests/gpu/prepare.sh" >"$work/log" 2>&1
[ $? = 2 ] && last "DSC_TEST_DATA is to name the folder"
ok $? "no data: exit code 2"
sh "$source/tests/gpu/prepare.sh" a b >"$work/log" 2>&1
[ $? = 2 ] && last 'at most one build folder is expected'
ok $? "two build folders: exit code 2"
mv "$work/build/Makefile" "$work/kept"
prepare 67108864
[ $? = 1 ] && last 'building the bundle: failed; all of its output is in'
ok $? "a bundle that cannot be made: exit code 1"
mv "$work/kept" "$work/build/Makefile"
prepare 67108864

for name in $(sed -n 's/.*only=//p' "$top/tests/gpu/call.sh" | tr -d ';)' | sed 's/\$only,//' | tr ',' ' '); do
    sh "$top/tests/gpu/run.sh" --list | awk '{ print $2 }' | grep -qx -e "$name"
    ok $? "there is a check $name"
done

# --- the calls -----------------------------------------------------------------------------------
mkdir "$work/root"
call b
[ $? = 3 ] && [ "$(wc -l <"$work/log")" = 1 ] && last 'run.sh is missing: call a unpacks it'
ok $? "b without a: exit code 3, one line"
call a 1
[ $? = 1 ] && grep -q -e '--device cpu --minutes 3.3 .*--only ops-quick,' "$work/log" && [ -s "$work/o/env.txt" ] &&
    cmp -s "$work/root/m1" "$source/.gpu/m1"
ok $? "a: run.sh's exit code, the machine, and the part is kept"
rm "$source/.gpu/m1"
call b && grep -q -e '--skip-passed .*/r1 --only peer-graph,' "$work/log" && cmp -s "$source/model" "$work/model.gguf" &&
    grep -q real_model "$work/log"
ok $? "b: the parts are the model, also where the first no longer travels"
mv "$source/.gpu/m2" "$work/m2"
call b && grep -q 'm2 is missing: no model' "$work/log" && ! grep -q smollm2.gguf "$work/log"
ok $? "b without its part: one line, and the checks without the model"
call a && grep -q 'm1 is missing, or .* call b will have no model' "$work/log"
ok $? "a without its part: one line, and the checks"
head -c 100 "$work/build/draftscope-gpu.tar.xz" >"$source/.gpu/b.tar.xz"
call a
[ $? = 3 ] && last 'b.tar.xz cannot be unpacked into'
ok $? "a bundle cut short: exit code 3"
rm "$source/.gpu/b.tar.xz"
call a
[ $? = 3 ] && [ "$(wc -l <"$work/log")" = 1 ] && last 'b.tar.xz is missing: tests/gpu/prepare.sh makes it'
ok $? "no bundle: exit code 3, one line"
call c
[ $? = 2 ] && last 'a or b is expected'
ok $? "another word: exit code 2"
summary
