# SPDX-License-Identifier: Apache-2.0
# Reads the machine code of one object and holds its kernels to a table of expectations.
#
#   awk -f sass.awk object=NAME arch=sm_90 table=0|1 mode=expect kernels.tsv \
#       mode=usage RESOURCES mode=code SASS
#
# RESOURCES is the output of cuobjdump -res-usage and SASS that of cuobjdump -sass, both demangled.
# A global load is in flight from its own instruction to the first one that names a register of its
# result: there a warp waits. The loads in flight of a loop are the most at any of its instructions,
# counted along two iterations in the order of the addresses, so that loads which one iteration
# leaves to the next count as well. Independent loads that the compiler put side by side count
# together; a load whose result is consumed before the next load is issued counts alone.
#
# A loop is what lies between the target of a backward branch and the branch. After an unconditional
# jump nothing is in flight: what runs next came from elsewhere. A kernel whose loops have none of
# the loads that are asked for is taken as one straight line.
#
# A kernel may run before the previous one has ended (programmatic dependent launch), until it
# executes ACQBULK (cudaGridDependencySynchronize). An instruction is before the wait if some path
# leads from the kernel's entry to it without an ACQBULK; the order of the addresses does not
# matter. No path is left out, at the price of paths that the program never takes:
#   - Every predicate may be true or false. An ACQBULK with a predicate does not end a path; a jump,
#     EXIT or RET with one continues at the next instruction, too.
#   - CALL continues at its target and at the next instruction, as if the function had returned
#     without waiting. RET ends a path, because its CALL has continued it.
#   - BSYNC continues at the next instruction. BSSY names the address where its threads meet again,
#     and continues there as well unless a BSYNC is right before that address. The address that
#     WARPSYNC.COLLECTIVE names may be next, too.
#   - A jump to an address that the text does not contain (BRX, JMX, a call of other code) is an
#     error before the wait.
# Accesses to global and to generic memory are counted; the latter may be shared memory. Loads of
# weights are exempt: those that `opcode` selects, if it requires L1::no_allocate (.NA), which only
# weights_load of weights.cuh uses. Prefetches (CCTL, UBLKPF) read nothing.

# ---- text to numbers -----------------------------------------------------------------------------

function hex(text,    i, n) {
    n = 0
    text = tolower(text)
    sub(/^0x/, "", text)
    for (i = 1; i <= length(text); i++)
        n = n * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
    return n
}

# Whether `op` has the modifier: LDG.E.128.CONSTANT has 128, LDG.E.LTC128B.64 does not.
function has(op, modifier) {
    return index("." op ".", "." modifier ".") > 0
}

function bytes_of(op) {
    return has(op, "128") ? 16 : has(op, "64") ? 8 : has(op, "U16") || has(op, "S16") ? 2 \
        : has(op, "U8") || has(op, "S8") ? 1 : 4
}

# kernel<(int)4, (bool)1>(float *, ...) of cu++filt and void kernel<4, true>(...) of c++filt
# alike become kernel<4, true>.
function plain(name) {
    gsub(/\(bool\)0/, "false", name)
    gsub(/\(bool\)1/, "true", name)
    gsub(/\((int|long|unsigned int|unsigned long)\)/, "", name)
    if (match(name, />\(/))
        name = substr(name, 1, RSTART)
    else
        sub(/\(.*/, "", name)
    sub(/^void /, "", name)
    return name
}

# ---- what an instruction touches -----------------------------------------------------------------

# Numbers of the general registers in `text`, each taken as `wide` of them (at least two when it
# says .64), after what `list` has.
function registers(list, text, wide,    n, count, i) {
    gsub(/UR[0-9]+/, "", text) # uniform registers
    while (match(text, /R[0-9]+/)) {
        n = substr(text, RSTART + 1, RLENGTH - 1) + 0
        text = substr(text, RSTART + RLENGTH)
        count = wide > 1 ? wide : substr(text, 1, 3) == ".64" ? 2 : 1
        for (i = 0; i < count; i++)
            list = list " " n + i
    }
    return list
}

# Operands are wider than they look in products of tensor cores, in double precision and in wide
# stores. Whatever else is wide begins at the register that is named.
function touched(op, text,    part, n, i, list, wide) {
    if (op ~ /^(HMMA|IMMA|DMMA|QMMA)/) {
        n = split(text, part, ",")
        list = ""
        for (i = 1; i <= n; i++) {
            wide = i == 2 ? 4 : i == 3 ? 2 : 4
            list = registers(list, part[i], wide)
        }
        return list
    }
    if (op ~ /^D(ADD|MUL|FMA|SETP)/)
        return registers("", text, 2)
    if (op ~ /^(ST|STG|STS|STL)(\.|$)/ && (i = index(text, "]")) > 0)
        return registers(registers("", substr(text, 1, i), 1), substr(text, i + 1), \
                         bytes_of(op) / 4)
    return registers("", text, 1)
}

# Loads in global or generic memory, and stores there with atomics and reductions. An instruction
# whose name begins in such a way is one unless it is known to be something else. Bulk copies count
# as loads in either direction.
function reads(op) {
    return op ~ /^U?LD/ && op !~ /^U?LD(S|SM|C|CU|L|GDEPBAR)(\.|$)/ || \
        op ~ /^(TEX|TLD|TMML|TXD|SULD)/ || \
        op ~ /^(UBLK|UTMA)/ && op !~ /^(UBLKPF|UTMAPF|UTMACCTL|UTMACMDFLUSH)(\.|$)/
}
function writes(op) {
    return op ~ /^U?ST/ && op !~ /^U?ST(S|SM|L)(\.|$)/ || op ~ /^SU(ST|ATOM|RED)/ || \
        op ~ /^(ATOM|RED)/ && op !~ /^(ATOMS|REDUX)(\.|$)/
}

# Loads through a path that does not see what other kernels write meanwhile.
function incoherent(op) {
    return op ~ /^U?LD/ && has(op, "CONSTANT") || op ~ /^(TEX|TLD|TMML|TXD)/
}

function of_weights(op) {
    return row_load[row] ~ /NA/ && op ~ /^LDG\./ && has(op, "NA") && op ~ row_load[row]
}

# The address that an instruction may go to, apart from the next one; -1: none, -2: unknown.
function target_of(op, text) {
    if (op !~ /^[BCJW]/) # most instructions
        return -1
    if (op ~ /^(BRX|JMX|CALL\.ABS)/)
        return -2
    if (op !~ /^(BRA|JMP|CALL|BSSY|WARPSYNC\.COLLECTIVE)/)
        return -1
    return match(text, /0x[0-9a-f]+$/) ? hex(substr(text, RSTART)) : -2
}

# ---- a kernel ------------------------------------------------------------------------------------

function add_instruction(line,    op, text, predicate) {
    match(line, /[0-9a-f]+/)
    at[++count] = hex(substr(line, RSTART, RLENGTH))
    sub(/^ *\/\*[0-9a-f]+\*\/ */, "", line)
    sub(/ *;.*/, "", line)
    predicate = line ~ /^@/
    sub(/^@!?U?P[0-9T]+ +/, "", line)
    op = line
    sub(/ .*/, "", op)
    text = substr(line, length(op) + 1)
    code[count] = op
    ends[count] = !predicate && op ~ /^(BRA|EXIT|RET|JMP|BRX|JMX|KILL)(\.|$)/
    waits[count] = !predicate && op ~ /^ACQBULK(\.|$)/
    target[count] = target_of(op, text)
    jump[count] = -1
    load[count] = 0
    if (op ~ /^BRA/) {
        if (match(text, /0x[0-9a-f]+/))
            jump[count] = hex(substr(text, RSTART, RLENGTH))
        # BRA.U !UP0, 0x10 and BRA.DIV UR4, 0x10 have a condition.
        ends[count] = ends[count] && text !~ /P[0-9]/ && op !~ /\.(DIV|CONV)/
    } else if (op ~ /^LDG(\.|$)/ && op ~ row_load[row]) {
        load[count] = bytes_of(op)
        match(text, /R[0-9]+/)
        first[count] = RSTART ? substr(text, RSTART + 1, RLENGTH - 1) + 0 : -1
        text = substr(text, RSTART + RLENGTH) # what is left: the address
    } else if (op ~ /^(LDL|STL)(\.|$)/)
        spills++
    uses[count] = row_hot[row] ? touched(op, text) : ""
}

# Load `i` is issued; the load that had its registers is forgotten.
function issue(i,    r, n) {
    n = load[i] > 4 ? load[i] / 4 : 1
    for (r = first[i]; r < first[i] + n; r++) {
        if (r in holder)
            finish(holder[r])
        holder[r] = i
    }
    flying[i] = 1
    in_flight++
    if (in_flight > most)
        most = in_flight
    if (in_flight >= row_loads[row])
        for (r in flying)
            grouped[r] = 1
}

function finish(i,    r, n) {
    n = load[i] > 4 ? load[i] / 4 : 1
    for (r = first[i]; r < first[i] + n; r++)
        delete holder[r]
    delete flying[i]
    in_flight--
}

function land(    r) {
    for (r in holder)
        delete holder[r]
    for (r in flying)
        delete flying[r]
    in_flight = 0
}

# The most loads in flight among instructions [from, to], gone through `times` times.
function walk(from, to, times,    i, n, k, reg) {
    most = 0
    land()
    for (; times > 0; times--)
        for (i = from; i <= to; i++) {
            if (in_flight) {
                n = split(uses[i], reg, " ")
                for (k = 1; k <= n; k++)
                    if (reg[k] in holder)
                        finish(holder[reg[k]])
            }
            if (load[i])
                issue(i)
            else if (ends[i] && i != to)
                land()
        }
    return most
}

function tally(from, to,    i) {
    wide = bytes = mma = copies = fma = prefetches = 0
    for (i = from; i <= to; i++) {
        wide += load[i] > 0
        if (load[i] > bytes)
            bytes = load[i]
        mma += code[i] ~ /^(HMMA|HGMMA)(\.|$)/
        copies += code[i] ~ /^(LDGSTS|UBLKCP)(\.|$)/
        fma += code[i] ~ /^FFMA/
        prefetches += code[i] ~ /^(CCTL.*PF|UBLKPF)/
    }
}

function loads_between(from, to,    i, n) {
    n = 0
    for (i = from; i <= to; i++)
        n += load[i] > 0
    return n
}

# Of the loop with the most loads in flight, of several the shortest.
function hottest(    i, k, n, best) {
    best = 0
    hot_from = 1
    hot_to = count
    for (i = 1; i <= count; i++) {
        if (jump[i] < 0 || jump[i] >= at[i] || !(jump[i] in where))
            continue
        k = where[jump[i]]
        if (!loads_between(k, i))
            continue
        n = walk(k, i, 2)
        if (n > best || n == best && i - k < hot_to - hot_from) {
            best = n
            hot_from = k
            hot_to = i
        }
    }
    loops = best > 0
    return loops ? best : walk(1, count, 1)
}

# Finds what is before the wait: `early` are the indices of these instructions, `strayed` is an
# instruction among them that jumps to an unknown address.
function find_early(    stack, top, i, to) {
    split("", early)
    strayed = 0
    stack[top = 1] = 1
    while (top > 0) {
        i = stack[top--]
        if (i > count || i in early)
            continue
        early[i] = 1
        if (waits[i])
            continue
        if (!ends[i])
            stack[++top] = i + 1
        if (target[i] == -1)
            continue
        to = target[i] in where ? where[target[i]] : 0
        if (!to)
            strayed = i
        else if (code[i] !~ /^BSSY/ || code[to - 1] !~ /^BSYNC/)
            stack[++top] = to
    }
}

# Counts accesses before the wait, and loads through the non-coherent path anywhere.
function count_early(    i) {
    early_reads = early_writes = constants = waiting = 0
    first_read = first_write = first_constant = 0
    for (i = 1; i <= count; i++) {
        waiting += waits[i] && i in early
        if (code[i] !~ /^[ALRSTU]/ || of_weights(code[i]))
            continue
        if (reads(code[i]) && i in early && !early_reads++)
            first_read = i
        if (writes(code[i]) && i in early && !early_writes++)
            first_write = i
        if (incoherent(code[i]) && !constants++)
            first_constant = i
    }
}

function where_is(i) {
    return i ? sprintf(", the first is %s at 0x%x", code[i], at[i]) : ""
}

function judge_early() {
    find_early()
    count_early()
    if (constants > row_constants[row])
        broken(sprintf("%d loads through the non-coherent path, at most %d are expected%s", \
                       constants, row_constants[row], where_is(first_constant)))
    if (!row_waits[row])
        return
    if (!waiting)
        broken("it never waits for the previous kernel: no ACQBULK without a predicate is reached")
    if (strayed)
        broken(sprintf("%s at 0x%x jumps to an unknown address before ACQBULK", \
                       code[strayed], at[strayed]))
    if (early_reads > row_reads[row])
        broken(sprintf("%d loads before ACQBULK, at most %d are expected%s", early_reads, \
                       row_reads[row], where_is(first_read)))
    if (early_writes > row_writes[row])
        broken(sprintf("%d stores before ACQBULK, at most %d are expected%s", early_writes, \
                       row_writes[row], where_is(first_write)))
}

function broken(text) {
    problems = problems (problems ? "; " : "") text
}

# The kernel whose instructions have been read.
function conclude(    loads, n, i) {
    if (!row || !count)
        return
    seen[row]++
    for (i in grouped)
        delete grouped[i]
    problems = ""
    split("", where)
    for (i = 1; i <= count; i++)
        where[at[i]] = i
    judge_early()
    loads = n = 0
    if (row_hot[row]) {
        loads = hottest()
        for (i in grouped)
            n++
        tally(hot_from, hot_to)
    }
    if (loads < row_loads[row])
        broken(sprintf("%d loads %s in flight, at least %d are expected", loads, row_load[row], \
                       row_loads[row]))
    if (n < row_grouped[row])
        broken(sprintf("%d loads in such groups, at least %d are expected", n, row_grouped[row]))
    if (use_registers[name] > row_registers[row])
        broken(sprintf("%d registers, at most %d are expected", use_registers[name], \
                       row_registers[row]))
    if (use_shared[name] > row_shared[row])
        broken(sprintf("%d bytes of shared memory, at most %d are expected", use_shared[name], \
                       row_shared[row]))
    if (spills > row_spills[row])
        broken(sprintf("%d spill instructions, at most %d are expected", spills, row_spills[row]))
    if (!(name in use_registers))
        broken("its registers are not in the output of cuobjdump -res-usage")
    if (problems)
        failed = 1
    if (table && !row_hot[row])
        return
    if (table)
        printf "| `%s` | %d | %d, %d | %d | %d x %d | %d | %d | %d | %d | %d | %d | %s |\n", name, \
            use_registers[name], spills, use_stack[name], use_shared[name], loads, bytes, n, \
            wide, copies, mma, fma, prefetches, \
            loops ? sprintf("0x%x-0x%x", at[hot_from], at[hot_to]) : "none"
    else if (problems)
        printf "not ok - %s: %s: %s (%s:%d)\n", object, name, problems, expectations, row
    else
        printf "ok - %s: %s: %s%d loads and %d stores before it waits, %d non-coherent loads\n", \
            object, name, \
            row_hot[row] ? sprintf("%d loads of %d bytes in flight, %d registers, ", loads, bytes, \
                                   use_registers[name]) : "", \
            early_reads, early_writes, constants
}

# ---- the files -----------------------------------------------------------------------------------

function at_least(text) {
    return text == "-" ? 0 : text + 0
}
function at_most(text) {
    return text == "-" ? 1e9 : text + 0
}

mode == "expect" {
    expectations = FILENAME
    sub(/.*\//, "", expectations)
    if ($0 ~ /^#/ || $0 ~ /^[ \t]*$/)
        next
    if (split($0, field, "\t") != 12) {
        printf "not ok - %s:%d: 12 fields between tabs are expected\n", expectations, FNR
        failed = 1
        next
    }
    if (field[1] != object || field[3] != arch)
        next
    row_pattern[FNR] = field[2]
    row_hot[FNR] = field[4] != "-"
    row_loads[FNR] = at_least(field[4])
    row_load[FNR] = field[5]
    row_grouped[FNR] = at_least(field[6])
    row_registers[FNR] = at_most(field[7])
    row_shared[FNR] = at_most(field[8])
    row_spills[FNR] = at_most(field[9])
    row_waits[FNR] = field[10] != "-"
    row_reads[FNR] = at_most(field[10])
    row_writes[FNR] = at_most(field[11])
    row_constants[FNR] = at_most(field[12])
    rows[++row_count] = FNR
    next
}

mode == "usage" && /^ *Function / {
    sub(/^ *Function /, "")
    sub(/:$/, "")
    name = plain($0)
    next
}

mode == "usage" && /REG:/ {
    n = split($0, field, " ")
    for (i = 1; i <= n; i++) {
        split(field[i], pair, ":")
        if (pair[1] == "REG")
            use_registers[name] = pair[2] + 0
        else if (pair[1] == "STACK")
            use_stack[name] = pair[2] + 0
        else if (pair[1] == "SHARED")
            use_shared[name] = pair[2] + 0
    }
    next
}

mode == "code" && /Function : / {
    conclude()
    sub(/.*Function : /, "")
    name = plain($0)
    row = count = spills = 0
    for (i = 1; i <= row_count && !row; i++)
        if (name ~ row_pattern[rows[i]])
            row = rows[i]
    if (!row) {
        printf "not ok - %s: %s: no row of %s for %s matches this kernel\n", object, name, \
            expectations, arch
        failed = 1
    }
    next
}

mode == "code" && row && /^ *\/\*[0-9a-f]+\*\/ +[@A-Z]/ {
    add_instruction($0)
}

END {
    conclude()
    for (i = 1; i <= row_count; i++)
        if (!seen[rows[i]]) {
            printf "not ok - %s:%d: no kernel of %s for %s matches %s\n", expectations, rows[i], \
                object, arch, row_pattern[rows[i]]
            failed = 1
        }
    exit failed
}
