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
    jump[count] = -1
    load[count] = 0
    if (op ~ /^BRA/) {
        if (match(text, /0x[0-9a-f]+/))
            jump[count] = hex(substr(text, RSTART, RLENGTH))
        ends[count] = ends[count] && text !~ /P[0-9]/ # BRA.U !UP0, 0x10
    } else if (op ~ /^LDG(\.|$)/ && op ~ row_load[row]) {
        load[count] = bytes_of(op)
        match(text, /R[0-9]+/)
        first[count] = RSTART ? substr(text, RSTART + 1, RLENGTH - 1) + 0 : -1
        text = substr(text, RSTART + RLENGTH) # what is left: the address
    } else if (op ~ /^(LDL|STL)(\.|$)/)
        spills++
    uses[count] = touched(op, text)
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
function hottest(    i, k, n, best, where) {
    best = 0
    hot_from = 1
    hot_to = count
    for (i = 1; i <= count; i++)
        where[at[i]] = i
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
    loads = hottest()
    n = 0
    for (i in grouped)
        n++
    tally(hot_from, hot_to)
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
    if (table)
        printf "| `%s` | %d | %d, %d | %d | %d x %d | %d | %d | %d | %d | %d | %d | %s |\n", name, \
            use_registers[name], spills, use_stack[name], use_shared[name], loads, bytes, n, \
            wide, copies, mma, fma, prefetches, \
            loops ? sprintf("0x%x-0x%x", at[hot_from], at[hot_to]) : "none"
    else if (problems)
        printf "not ok - %s: %s: %s (%s:%d)\n", object, name, problems, expectations, row
    else
        printf "ok - %s: %s: %d loads of %d bytes in flight, %d registers\n", object, name, \
            loads, bytes, use_registers[name]
}

# ---- the files -----------------------------------------------------------------------------------

mode == "expect" {
    expectations = FILENAME
    sub(/.*\//, "", expectations)
    if ($0 ~ /^#/ || $0 ~ /^[ \t]*$/)
        next
    if (split($0, field, "\t") != 9) {
        printf "not ok - %s:%d: 9 fields between tabs are expected\n", expectations, FNR
        failed = 1
        next
    }
    if (field[1] != object || field[3] != arch)
        next
    row_pattern[FNR] = field[2]
    row_loads[FNR] = field[4] + 0
    row_load[FNR] = field[5]
    row_grouped[FNR] = field[6] + 0
    row_registers[FNR] = field[7] + 0
    row_shared[FNR] = field[8] + 0
    row_spills[FNR] = field[9] + 0
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
