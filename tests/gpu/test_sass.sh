#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests tests/gpu/sass.awk on hand-written machine code with known loads in flight, and
# tests/gpu/sass.sh on kernels compiled here if there is a compiler: serial loads must fail, the
# same loads in parallel must pass.
. "${top_srcdir:-.}/tests/gpu/common.sh"
expect() { # loads, grouped, registers, shared, spills, kernel: a table of one row
    printf 'hand\t%s\tsm_90\t%s\t\\.128\t%s\t%s\t%s\t%s\n' "$6" "$1" "$2" "$3" "$4" "$5" \
        >"$work/table.tsv"
}
cat >"$work/usage" <<'END'
 Function void hot<(int)4, true>(float*):
  REG:40 STACK:16 SHARED:1024 LOCAL:0 CONSTANT[0]:577 TEXTURE:0 SURFACE:0 SAMPLER:0
END
# Compares the kernel whose instructions are on standard input, at 0x0, 0x10, ..., with the table.
run() {
    {
        printf '\t\tFunction : void hot<(int)4, true>(float*)\n\t.headerflags\t@"EF_CUDA_SM90"\n'
        awk '{ printf "        /*%04x*/                   %s ;      /* 0x0123456789abcdef */\n", \
                   16 * (NR - 1), $0
               printf "                                              /* 0x000fe200078e00ff */\n" }'
    } >"$work/code"
    awk -f "$top/tests/gpu/sass.awk" object=hand arch=sm_90 table=0 mode=expect \
        "$work/table.tsv" mode=usage "$work/usage" mode=code "$work/code" >"$work/log" 2>&1
}
counts() { # loads in flight, name: of the kernel on standard input
    expect 1 0 255 99999 99 'hot<4, true>$'
    run
    grep -q ": $1 loads of 16 bytes in flight" "$work/log"
    ok $? "$2: $1 in flight"
}

# ---- what is in flight ---------------------------------------------------------------------------

counts 4 'loads side by side' <<'END'
LDG.E.128 R4, desc[UR4][R2.64]
LDG.E.128 R8, desc[UR4][R2.64+0x10]
LDG.E.NA.LTC256B.128.CONSTANT R12, desc[UR4][R2.64+0x20]
@P1 LDG.E.128 R16, desc[UR4][R2.64+0x30]
FFMA R0, R4, R8, R0
FFMA R0, R12, R16, R0
@P0 BRA 0x0
EXIT
END
counts 1 'each load consumed at once' <<'END'
LDG.E.128 R4, desc[UR4][R2.64]
FFMA R0, R7, R20, R0
LDG.E.128 R8, desc[UR4][R2.64+0x10]
FFMA R0, R9, R20, R0
LDG.E.128 R12, desc[UR4][R2.64+0x20]
FFMA R0, R14, R20, R0
@P0 BRA 0x0
EXIT
END
counts 3 'a consumed load cuts the group' <<'END'
LDG.E.128 R4, desc[UR4][R2.64]
LDG.E.128 R8, desc[UR4][R2.64+0x10]
FFMA R0, R6, R20, R0
LDG.E.128 R12, desc[UR4][R2.64+0x20]
LDG.E.128 R16, desc[UR4][R2.64+0x30]
FFMA R0, R8, R12, R16
@P0 BRA 0x0
EXIT
END
counts 1 'an address that was loaded' <<'END'
LDG.E.128 R4, desc[UR4][R2.64]
LDG.E.128 R8, desc[UR4][R6.64]
FFMA R0, R8, R9, R0
@P0 BRA 0x0
EXIT
END
counts 2 'a load for the next iteration' <<'END'
LDG.E.128 R8, desc[UR4][R2.64]
LDG.E.128 R4, desc[UR4][R2.64]
FFMA R0, R8, R8, R0
FFMA R0, R4, R4, R0
LDG.E.128 R8, desc[UR4][R2.64+0x10]
@P0 BRA 0x10
EXIT
END
counts 2 'a product of tensor cores consumes four registers' <<'END'
LDG.E.128 R8, desc[UR4][R2.64]
LDG.E.128 R12, desc[UR4][R2.64]
HMMA.16816.F32.BF16 R24, R6, R20, R24
LDG.E.128 R16, desc[UR4][R2.64+0x10]
HMMA.16816.F32.BF16 R24, R32, R12, R24
HMMA.16816.F32.BF16 R24, R32, R16, R24
@P0 BRA 0x0
EXIT
END
counts 2 'the loop counts, not the code around it' <<'END'
LDG.E.128 R4, desc[UR4][R2.64]
LDG.E.128 R8, desc[UR4][R2.64]
LDG.E.128 R12, desc[UR4][R2.64]
FADD R0, R4, R8
FADD R0, R0, R12
LDG.E.128 R4, desc[UR4][R2.64]
LDG.E.128 R8, desc[UR4][R2.64]
FFMA R0, R4, R8, R0
@P0 BRA 0x50
EXIT
BRA 0xa0
END
counts 2 'nothing is in flight after a jump' <<'END'
LDG.E.128 R4, desc[UR4][R2.64]
BRA 0x40
LDG.E.128 R8, desc[UR4][R2.64]
LDG.E.128 R12, desc[UR4][R2.64]
FFMA R0, R4, R8, R12
@P0 BRA 0x0
EXIT
END
counts 2 'uniform registers and narrow loads are something else' <<'END'
LDG.E.128 R4, desc[UR4][R2.64]
LDG.E R20, desc[UR4][R2.64]
R2UR UR4, R24
UIADD3 UR5, UR5, 0x1, URZ
LDG.E.LTC128B.64 R22, desc[UR8][R2.64]
LDG.E.128 R8, desc[UR4][R2.64]
FFMA R0, R5, R10, R0
@P0 BRA 0x0
EXIT
END
counts 3 'no loop: a straight line' <<'END'
LDG.E.128 R4, desc[UR4][R2.64]
LDG.E.128 R8, desc[UR4][R2.64]
LDG.E.128 R12, desc[UR4][R2.64]
FFMA R0, R4, R8, R12
EXIT
BRA 0x50
END

# ---- what fails ----------------------------------------------------------------------------------

pair() { # two loads side by side, one alone, and two spill instructions
    run <<'END'
LDG.E.128 R4, desc[UR4][R2.64]
LDG.E.128 R8, desc[UR4][R2.64]
FFMA R0, R4, R8, R0
LDG.E.128 R12, desc[UR4][R2.64]
FFMA R0, R12, R12, R0
STL [R1], R0
LDL R0, [R1]
@P0 BRA 0x0
EXIT
END
}
expect 2 2 40 1024 2 'hot<4, true>$'
pair
ok $? "what is expected passes"
broken() { # text, name; the table is written
    pair
    [ $? = 1 ] && grep -q "^not ok.*$1" "$work/log"
    ok $? "$2 fails"
}
expect 3 0 255 99999 99 'hot<4, true>$'
broken '2 loads \\.128 in flight, at least 3 are expected (table.tsv:1)' 'a lost group'
expect 2 3 255 99999 99 'hot<4, true>$'
broken '2 loads in such groups, at least 3' 'a group lost out of several'
expect 2 2 39 99999 99 'hot<4, true>$'
broken '40 registers, at most 39' 'a register too many'
expect 2 2 255 1023 99 'hot<4, true>$'
broken '1024 bytes of shared memory, at most 1023' 'too much shared memory'
expect 2 2 255 99999 1 'hot<4, true>$'
broken '2 spill instructions, at most 1' 'a spill'
expect 2 2 255 99999 99 'cold'
broken 'no kernel of hand for sm_90 matches cold' 'a kernel that is gone'
printf 'hand hot sm_90\n' >"$work/table.tsv"
broken '9 fields' 'a row without tabs'

# ---- the whole road ------------------------------------------------------------------------------

sh "$top/tests/gpu/sass.sh" --no-such >"$work/log" 2>&1
[ $? = 2 ]
ok $? "usage: exit code 2"
sh "$top/tests/gpu/sass.sh" --expect "$work/none.tsv" >"$work/log" 2>&1
[ $? = 2 ]
ok $? "no table: exit code 2"

# yes or no: each of the eight loads of an iteration is used before the next one, or all are in
# flight together. The bound on blocks gives ptxas the registers that it otherwise saves by issuing
# fewer loads at once.
kernel() {
    mkdir -p "$work/$1"
    cat >"$work/$1/hand.cu" <<END
#define SERIAL_$1
END
    cat >>"$work/$1/hand.cu" <<'END'
__global__ void __launch_bounds__(256, 2) hot(float *out, const uint4 *in, int n)
{
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) {
        uint4 raw[8];
#pragma unroll
        for (int j = 0; j < 8; j++) {
#ifdef SERIAL_yes
            raw[j] = in[i + j * 32 + (sum == 1234)]; // waits for the load before it
            sum += __uint_as_float(raw[j].x ^ raw[j].y ^ raw[j].z ^ raw[j].w);
#else
            raw[j] = in[i + j * 32];
#endif
        }
#ifdef SERIAL_no
#pragma unroll
        for (int j = 0; j < 8; j++)
            sum += __uint_as_float(raw[j].x ^ raw[j].y ^ raw[j].z ^ raw[j].w);
#endif
    }
    out[threadIdx.x] = sum;
}
END
    expect 8 8 255 0 0 '^hot$'
    sh "$top/tests/gpu/sass.sh" --expect "$work/table.tsv" "$work/$1/hand.cu" >"$work/log" 2>&1
}
kernel no
code=$?
if [ $code = 77 ]; then
    echo "# no kernels compiled: $(head -n 1 "$work/log")"
else
    ok $code "compiled loads side by side pass"
    kernel yes
    [ $? = 1 ] && grep -q '^not ok.* in flight, at least 8' "$work/log"
    ok $? "compiled loads one after another fail"
fi
summary
