#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests tests/gpu/sass.awk on hand-written machine code with known loads in flight and known
# accesses before the wait for the previous kernel, and tests/gpu/sass.sh on kernels compiled here
# if there is a compiler: serial loads must fail, the same loads in parallel must pass, and a kernel
# that reads before it waits must fail.
. "${top_srcdir:-.}/tests/gpu/common.sh"
expect() { # loads, grouped, registers, shared, spills, kernel: a table of one row
    printf 'hand\t%s\tsm_90\t%s\t\\.128\t%s\t%s\t%s\t%s\t-\t-\t-\n' "$6" "$1" "$2" "$3" "$4" "$5" \
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
broken '12 fields' 'a row without tabs'

# ---- before the wait -----------------------------------------------------------------------------

early() { # loads, stores, non-coherent loads, opcode of weights: a table of one row
    printf 'hand\thot<4, true>$\tsm_90\t-\t%s\t-\t-\t-\t-\t%s\t%s\t%s\n' "${4:--}" "$1" "$2" "$3" \
        >"$work/table.tsv"
}
passes() { # name; the kernel is on standard input
    run
    code=$?
    [ $code = 0 ] && grep -q '^ok - hand: hot<4, true>: ' "$work/log" && ! grep -q not "$work/log"
    ok $? "$1 passes"
}
# The log is one line, which has the text.
fails() { # text, name; the kernel is on standard input
    run
    code=$?
    [ $code = 1 ] && [ "$(wc -l <"$work/log")" -eq 1 ] &&
        grep -qF "not ok - hand: hot<4, true>: $1" "$work/log"
    ok $? "$2 fails"
}
early 0 0 0
passes 'a kernel that waits first' <<'END'
LDC R1, c[0x0][0x28]
ACQBULK
LDG.E R4, desc[UR4][R2.64]
STG.E desc[UR4][R2.64], R4
REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R4
EXIT
END
fails '1 loads before ACQBULK, at most 0 are expected, the first is LDG.E at 0x0 (table.tsv:1)' \
    'a load before the wait' <<'END'
LDG.E R4, desc[UR4][R2.64]
ACQBULK
STG.E desc[UR4][R2.64], R4
EXIT
END
fails '1 loads before ACQBULK, at most 0 are expected, the first is LDG.E at 0x20' \
    'a load on one branch before the wait' <<'END'
LDC R1, c[0x0][0x28]
@P0 BRA 0x30
LDG.E R4, desc[UR4][R2.64]
ACQBULK
LDG.E R5, desc[UR4][R2.64]
EXIT
END
fails '1 loads before ACQBULK, at most 0 are expected, the first is LDG.E at 0x20' \
    'a branch around the wait' <<'END'
@P0 BRA 0x20
ACQBULK
LDG.E R4, desc[UR4][R2.64]
EXIT
END
fails '1 loads before ACQBULK, at most 0 are expected, the first is LDG.E at 0x40' \
    'a load at a higher address, but before the wait' <<'END'
@P0 BRA 0x40
ACQBULK
LDG.E R4, desc[UR4][R2.64]
EXIT
LDG.E R5, desc[UR4][R2.64]
BRA 0x10
END
passes 'a load at a lower address, but after the wait' <<'END'
BRA 0x30
LDG.E R4, desc[UR4][R2.64]
EXIT
ACQBULK
BRA 0x10
END
passes 'a load of a loop that is entered at its wait' <<'END'
BRA 0x20
LDG.E R4, desc[UR4][R2.64]
ACQBULK
@P0 BRA 0x10
EXIT
END
passes 'a load that nothing reaches' <<'END'
ACQBULK
EXIT
LDG.E R4, desc[UR4][R2.64]
BRA 0x20
END
fails '1 loads before ACQBULK' 'a load after an exit of some threads' <<'END'
@P0 EXIT
LDG.E R4, desc[UR4][R2.64]
ACQBULK
EXIT
END
fails '1 loads before ACQBULK' 'a load after a jump of some threads' <<'END'
BRA.DIV UR4, 0x30
LDG.E R4, desc[UR4][R2.64]
ACQBULK
EXIT
END
fails '1 loads before ACQBULK, at most 0 are expected, the first is LDG.E at 0x40' \
    'a load where threads meet that have not all waited' <<'END'
BSSY B0, 0x40
@P0 BRA 0x30
ACQBULK
BSYNC B0
LDG.E R4, desc[UR4][R2.64]
EXIT
END
passes 'a load where threads meet that have all waited' <<'END'
BSSY B0, 0x50
@P0 BRA 0x30
NOP
ACQBULK
BSYNC B0
LDG.E R4, desc[UR4][R2.64]
EXIT
END
fails '1 loads before ACQBULK' 'a load of a function that is called before the wait' <<'END'
CALL.REL.NOINC 0x40
ACQBULK
LDG.E R4, desc[UR4][R2.64]
EXIT
LDG.E R4, desc[UR4][R2.64]
RET.REL.NODEC R2 0x0
END
passes 'a load of a function that is called after the wait' <<'END'
ACQBULK
CALL.REL.NOINC 0x40
LDG.E R4, desc[UR4][R2.64]
EXIT
LDG.E R4, desc[UR4][R2.64]
RET.REL.NODEC R2 0x0
END
fails 'BRX at 0x0 jumps to an unknown address before ACQBULK' 'a jump through a table' <<'END'
@P0 BRX R14 -0x10
ACQBULK
EXIT
END
fails 'CALL.REL.NOINC at 0x0 jumps to an unknown address before ACQBULK' \
    'a call of code that is elsewhere' <<'END'
CALL.REL.NOINC 0x4000
ACQBULK
EXIT
END
fails '1 loads before ACQBULK, at most 0 are expected, the first is LDG.E at 0x10' \
    'a load between a wait of some threads and that of all' <<'END'
@P0 ACQBULK
LDG.E R4, desc[UR4][R2.64]
ACQBULK
EXIT
END
alone='it never waits for the previous kernel: no ACQBULK without a predicate is reached (table'
fails "$alone" 'a wait of some threads only' <<'END'
@!P1 ACQBULK
EXIT
END
fails "$alone" 'a kernel without a wait' <<'END'
LDC R1, c[0x0][0x28]
EXIT
END
fails "$alone" 'a wait that nothing reaches' <<'END'
EXIT
ACQBULK
END
for op in STG.E ST.E.64 ATOMG.E.ADD.STRONG.GPU ATOM.E.CAS REDG.E.ADD RED.E.ADD; do
    fails "1 stores before ACQBULK, at most 0 are expected, the first is $op" "$op early" <<END
$op desc[UR4][R2.64], R4
ACQBULK
EXIT
END
done
for op in LDG.E LD.E.64 LDGSTS.E.BYPASS.128 LDG.E.STRONG.GPU UBLKCP.S.G LDG.E.NA.128; do
    fails "1 loads before ACQBULK, at most 0 are expected, the first is $op" "$op early" <<END
$op R4, desc[UR4][R2.64]
ACQBULK
EXIT
END
done
passes 'shared, local and constant memory before the wait' <<'END'
LDS.128 R4, [R2]
LDSM.16.M88.4 R4, [R2]
STS R4, [R2]
ATOMS.ADD R4, [R2]
LDL R4, [R1]
STL [R1], R4
LDC R4, c[0x0][0x210]
ULDC.64 UR4, c[0x0][0x208]
REDUX.SUM UR4, R4
LDGDEPBAR
CCTL.E.PF2 [R2]
UBLKPF.L2 [UR4], UR6
ACQBULK
EXIT
END
weights() {
    echo 'LDG.E.NA.128.CONSTANT R4, desc[UR4][R2.64]'
    echo ACQBULK
    echo 'LDG.E.NA.128.CONSTANT R8, desc[UR4][R2.64]'
    echo EXIT
}
early 0 0 0 '\.NA\..*128'
passes 'weights before the wait' <<END
$(weights)
END
early 0 0 0 '\.128'
fails '2 loads through the non-coherent path, at most 0 are expected, the first is LDG.E.NA' \
    'the same loads in a kernel without weights' <<END
$(weights)
END
constant() {
    run <<'END'
ACQBULK
LDG.E.128.CONSTANT R4, desc[UR4][R2.64]
EXIT
END
}
early 0 0 1
constant
ok $? 'an expected load through the non-coherent path passes'
early 0 0 0
fails '1 loads through the non-coherent path, at most 0 are expected, the first is LDG.E.128' \
    'a load through the non-coherent path' <<'END'
ACQBULK
LDG.E.128.CONSTANT R4, desc[UR4][R2.64]
EXIT
END
early - - 0
passes 'a kernel that need not wait' <<'END'
EXIT
END
early 0 0 0
run <<'END'
ACQBULK
EXIT
END
sed 's/hot<(int)4, true>/fresh/' "$work/code" >"$work/fresh"
cat "$work/fresh" >>"$work/code"
awk -f "$top/tests/gpu/sass.awk" object=hand arch=sm_90 table=0 mode=expect "$work/table.tsv" \
    mode=usage "$work/usage" mode=code "$work/code" >"$work/log" 2>&1
[ $? = 1 ] && [ "$(grep -c '^not ok' "$work/log")" -eq 1 ] &&
    grep -qF 'not ok - hand: fresh: no row of table.tsv for sm_90 matches this kernel' "$work/log"
ok $? 'a kernel without a row fails'

# ---- the whole road ------------------------------------------------------------------------------

sh "$top/tests/gpu/sass.sh" --no-such >"$work/log" 2>&1
[ $? = 2 ] && grep -q '^usage: sass.sh' "$work/log"
ok $? "usage: exit code 2"
sh "$top/tests/gpu/sass.sh" --expect "$work/none.tsv" >"$work/log" 2>&1
[ $? = 2 ] && grep -q 'none.tsv: --expect takes a table' "$work/log"
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

# Kernels that read or write before they wait, on one branch or on all, and one whose qualifiers let
# the compiler take the non-coherent path.
seeded() {
    cat <<'END'
__global__ void right(float *out, const float *in)
{
    cudaGridDependencySynchronize();
    out[threadIdx.x] += in[threadIdx.x];
}
__global__ void reads(float *out, const float *in)
{
    const float x = *(const volatile float *)(in + threadIdx.x);
    cudaGridDependencySynchronize();
    out[threadIdx.x] += x;
}
__global__ void reads_on_branch(float *out, const float *in, int which)
{
    float x = 0;
    if (which > (int)threadIdx.x)
        x = *(const volatile float *)(in + threadIdx.x);
    cudaGridDependencySynchronize();
    out[threadIdx.x] += x + in[which];
}
__global__ void writes(float *out, const float *in)
{
    out[threadIdx.x] = 1;
    cudaGridDependencySynchronize();
    out[threadIdx.x] += in[threadIdx.x];
}
__global__ void some_wait(float *out, const float *in, int which)
{
    if (which > (int)threadIdx.x)
        cudaGridDependencySynchronize();
    out[threadIdx.x] += in[threadIdx.x];
}
__global__ void restricted(float *__restrict__ out, const float *__restrict__ in)
{
    cudaGridDependencySynchronize();
    out[threadIdx.x] += in[threadIdx.x];
}
END
}
verdict() { # kernel, text: the beginning of the only line about it
    [ "$(grep -c ": $1: " "$work/log")" -eq 1 ] && grep -q "^$2" "$work/log"
    ok $? "compiled $1: $2"
}
if [ $code != 77 ]; then
    # A tree whose table lacks one of two kernel files.
    mkdir -p "$work/tree/tests/gpu" "$work/tree/live/device/cuda"
    cp "$top/tests/gpu/sass.sh" "$top/tests/gpu/sass.awk" "$work/tree/tests/gpu"
    seeded >"$work/tree/live/device/cuda/hand.cu"
    echo '__global__ void fresh(int *out) { *out = 1; }' >"$work/tree/live/device/cuda/fresh.cu"
    echo 'static const int no_kernels = 1;' >"$work/tree/live/device/cuda/none.cu"
    printf 'hand\t.\tsm_90\t-\t-\t-\t-\t-\t-\t0\t0\t0\n' >"$work/table.tsv"
    sh "$work/tree/tests/gpu/sass.sh" --expect "$work/table.tsv" "$work/tree" >"$work/log" 2>&1
    [ $? = 1 ]
    ok $? 'compiled kernels with early accesses fail'
    verdict right 'ok - hand: right: '
    verdict reads 'not ok - hand: reads: 1 loads before ACQBULK, at most 0'
    verdict reads_on_branch 'not ok - hand: reads_on_branch: 1 loads before ACQBULK, at most 0'
    verdict writes 'not ok - hand: writes: 1 stores before ACQBULK, at most 0'
    verdict some_wait 'not ok - hand: some_wait: .*[1-9] loads before ACQBULK, at most 0'
    verdict restricted 'not ok - hand: restricted: 1 loads through the non-coherent path, at most 0'
    verdict fresh 'not ok - fresh: fresh: no row of table.tsv for sm_90 matches this kernel'
fi
summary
