# SPDX-License-Identifier: Apache-2.0
# Predicts the time of a pass on an H200, kernel by kernel; nothing is measured. It prints
# the tables of README.md, in Markdown:
#
#   awk -f roofline.awk models.tsv
#   awk -f roofline.awk -v achievable=.88 -v gap_us=1.3 models.tsv    # other assumptions
#   awk -f roofline.awk -v show=weights models.tsv                    # bytes of weights of a pass
#
# A kernel takes
#
#   gap + trips x latency + max(bytes of memory / bandwidth, bytes from L2 / L2 bandwidth,
#                               operations / peak)
#
# and kernels run one after another. Weights and the cache come from memory; activations stay in L2
# while they are small enough. Weights and the cache are bf16, activations F32 where no comment says
# otherwise. The prediction leaves out what makes a real pass slower: blocks that do not divide
# evenly among the multiprocessors, bank conflicts, exponentials, misses of the TLB, low clocks.

# ---- assumptions: each can be set with -v --------------------------------------------------------

function given(value, otherwise) {
    return value == "" ? otherwise : value + 0
}

function assume() {
    memory = given(memory, 4.8e12)          # bytes/s, nominal
    achievable = given(achievable, .92)     # of it, by a kernel that reads once
    l2 = given(l2, 5.7e12)                  # bytes/s from L2 to all multiprocessors
    l2_bytes = given(l2_bytes, 30e6)        # of activations that stay in L2 beside weights
    tensor = given(tensor, 989.4e12)        # bf16 operations/s, nominal
    mma = given(mma, .6)                    # of it, by mma.sync
    blas = given(blas, .7)                  # of it, by cuBLAS
    blas_memory = given(blas_memory, .85)   # of the achievable bandwidth, by cuBLAS
    cores = given(cores, 66.9e12)           # F32 operations/s of the ordinary cores, nominal
    busy = given(busy, .6)                  # of it, by attention
    issue = given(issue, .75)               # of the instructions that could be issued, by GEMV
    gap_us = given(gap_us, .8)              # between two kernels, with programmatic launches
    blas_gap_us = given(blas_gap_us, 1.3)   # between two kernels, without them
    latency_us = given(latency_us, .35)     # of one dependent trip to memory
    host_us = given(host_us, 8)             # launch of the graph, wait for its end
    skinny_rows = given(skinny_rows, 4)     # activation rows up to which the GEMV kernel serves
    tile_rows = given(tile_rows, 64)        # and up to which the tensor-core kernel does
    tile_block = given(tile_block, 128)     # weight rows of a block of the tensor-core kernel
    processors = given(processors, 132)     # of the device
    queries = given(queries, 8)             # queries of a block of attention
    places = given(places, 128)             # places of a split of attention
    model = model == "" ? "Llama 3 8B" : model # of the tables by kernel
    context = given(context, 512)           # of the tables by kernel and of the ratios
}

function assumptions() {
    print "| assumption | value | source |\n|---|---|---|"
    printf "| memory, nominal | %.2f TB/s | NVIDIA's data sheet of the H200 |\n", memory * 1e-12
    printf "| achievable share of it | %.2f | assumed; [1] reads 3.89 TB/s, 97 %%, on a GH200 " \
        "of 4.0 TB/s nominal |\n", achievable
    printf "| L2 to the multiprocessors | %.2f TB/s | assumed, on the low side; [1] reads 7.1 " \
        "TB/s on an H100 PCIe and 9.7 TB/s on the GH200, where blocks share what they read " \
        "|\n", l2 * 1e-12
    printf "| tensor cores, bf16, nominal | %.0f TFLOP/s | NVIDIA's data sheet |\n", tensor * 1e-12
    printf "| share of it by `mma.sync` | %.2f | 62.9 %% on average on Hopper [2] " \
        "|\n", mma
    printf "| cuBLAS: share of the peak, of the achievable bandwidth | %.2f, %.2f | assumed |\n", \
        blas, blas_memory
    printf "| ordinary cores, F32, nominal; share of it | %.1f TFLOP/s, %.2f | NVIDIA's data " \
        "sheet; assumed |\n", cores * 1e-12, busy
    printf "| share of the instructions that could be issued, by the GEMV kernel | %.2f | assumed |\n", \
        issue
    printf "| gap between kernels, programmatic launch | %.2f us | assumed |\n", gap_us
    printf "| gap between kernels in a graph, without it | %.2f us | 1.3 us on an H100 [3] " \
        "|\n", blas_gap_us
    printf "| a dependent trip to memory | %.2f us | 687 cycles at 1.98 GHz on the GH200 [1] " \
        "|\n", latency_us
    printf "| launch of the graph and wait | %.0f us | assumed |\n", host_us
    printf "| GEMV kernel | up to %d rows; at most two blocks a processor for one row, one for " \
        "more | design |\n", skinny_rows
    printf "| tensor-core kernel | up to %d rows; %d weight rows a block, twice as many from 33 rows " \
        "on where these are enough blocks; K split until there are two blocks a processor | design " \
        "|\n", tile_rows, tile_block
    printf "| attention | %d queries a block, %d places a split | design |\n\n", queries, places
}

# ---- kernels -------------------------------------------------------------------------------------

function ceiling(x) {
    return x > int(x) ? int(x) + 1 : int(x)
}

function most(a, b) {
    return a > b ? a : b
}

function least(a, b) {
    return a < b ? a : b
}

# One kernel of the pass, launched `times` times: bytes read from memory and written to it, bytes
# from L2, operations at `peak` a second, dependent trips to memory.
function kernel(name, times, read, written, from_l2, flops, peak, trips,    m, l, f, us, bound) {
    m = (read + written) / (memory * achievable * (by_blas ? blas_memory : 1))
    l = from_l2 / l2
    f = flops / peak
    us = (by_blas ? blas_gap_us : gap_us) + trips * latency_us
    bound = m >= l && m >= f ? "memory" : l >= f ? "L2" : "operations"
    if (most(m, most(l, f)) * 1e6 < us)
        bound = "latency"
    us += most(m, most(l, f)) * 1e6
    total_us += times * us
    total_bytes += times * (read + written)
    launches += times
    if (detail)
        printf "| %s | %d | %.2f | %.2f | %.2f | %.3f | %s | %.1f | %.0f |\n", name, times, \
            read * 1e-6, written * 1e-6, from_l2 * 1e-6, flops * 1e-9, bound, us, times * us
}

# Activations that do not stay in L2 go to memory.
function spill(bytes) {
    return bytes > l2_bytes ? bytes : 0
}

# rows x k times the transpose of n x k weights into rows x n. `stored`: the bytes of a number of
# the input, 2 as attention and activations leave it, or 8 of a row that is normed on the way (F32,
# and the norm's weights).
#
# The GEMV kernel reads activations into shared memory once per block, and issues for each weight one
# instruction that unpacks it, one FMA per row, and half a one per row that unpacks the activation
# that two weight rows share. The tensor-core kernel makes tiles of 16, 32 or 64 rows.
function product(name, times, rows, n, k, stored,    weights, blocks, splits, from_l2, tile, wide) {
    weights = 2 * n * k
    weights_bytes += times * weights
    if (rows <= skinny_rows) {
        blocks = least(ceiling(n / 2), processors * (rows == 1 ? 2 : 1))
        from_l2 = weights + blocks * rows * k * stored
        kernel(name ", GEMV", times, weights, spill(4 * rows * n), from_l2, 2 * rows * n * k, \
               cores * issue * rows / (1.5 * rows + 1), 2)
    } else if (rows <= tile_rows) { # bf16 activations; partial sums are written and read in L2
        tile = rows <= 16 ? 16 : rows <= 32 ? 32 : 64
        wide = tile_block * (tile > 32 && n / 2 / tile_block >= .75 * processors ? 2 : 1)
        blocks = ceiling(n / wide)
        splits = least(int(2 * tile_block / wide * processors / blocks), \
                       least(int(k / 16 / rows), int(k / 512)))
        splits = most(splits, 1)
        from_l2 = weights * (1 + tile / wide) + (splits > 1 ? 8 * splits * tile * n : 0)
        kernel(name ", tensor cores", times, weights, spill(4 * rows * n), from_l2, \
               2 * tile * n * k, tensor * mma, splits > 1 ? 4 : 2)
    } else {
        by_blas = 1
        kernel(name ", cuBLAS", times, weights, spill(4 * rows * n), \
               weights * (1 + rows / tile_block), 2 * rows * n * k, tensor * blas, 1)
        by_blas = 0
    }
}

# Keys and values of the context are read once from memory, and from L2 by each block of queries.
# Six trips: what the pass sees, keys, values, partial sums out, the count of those that are done,
# partial sums in.
function attention(layers, rows, behind, heads, kv_heads, head,    cache, blocks, splits, partial) {
    behind += rows
    cache = 2 * behind * kv_heads * head * 2
    blocks = ceiling(rows * heads / kv_heads / queries)
    splits = ceiling(behind / places)
    partial = splits > 1 ? 2 * 4 * splits * rows * heads * (head + 2) : 0
    kernel("attention", layers, cache, 0, cache * blocks + partial, \
           4 * rows * behind * heads * head, cores * busy, 6)
}

# Elementwise over rows: `bytes` of activations go through L2, `stored` to memory.
function elementwise(name, times, bytes, stored) {
    kernel(name, times, spill(bytes), stored, bytes, 0, 1, 2)
}

# ---- passes --------------------------------------------------------------------------------------

# The time of a pass of `rows` tokens, in microseconds. Six launches a layer up to skinny_rows: the
# norm is part of the product after it, the activation of the product before it, residuals of both.
# Eight for the tensor-core kernel, whose norms are kernels of their own; nine with cuBLAS, whose
# activation is one as well.
function pass(name, rows, behind,    layers, hidden, ff, heads, kv, head, vocab, wide) {
    layers = shape[name, 2]
    hidden = shape[name, 3]
    ff = shape[name, 4]
    heads = shape[name, 5]
    kv = shape[name, 6]
    head = shape[name, 7]
    vocab = shape[name, 8]
    wide = (heads + 2 * kv) * head
    total_us = host_us
    total_bytes = launches = weights_bytes = 0
    elementwise("embedding", 1, 4 * rows * hidden, 2 * rows * hidden)
    if (rows > skinny_rows)
        elementwise("norm", 2 * layers, 6 * rows * hidden, 0)
    product("queries, keys, values", layers, rows, wide, hidden, 8)
    elementwise("rotate and append", layers, 8 * rows * wide, 4 * rows * kv * head)
    attention(layers, rows, behind, heads, kv, head)
    product("attention output", layers, rows, hidden, heads * head, 2)
    product("gate and up", layers, rows, 2 * ff, hidden, 8)
    if (rows > tile_rows)
        elementwise("activation", layers, 10 * rows * ff, 0)
    product("down", layers, rows, hidden, ff, 2)
    elementwise("last norm", 1, 8 * rows * hidden, 0)
    elementwise("gather", 1, 8 * rows * hidden, 0)
    product("logits", 1, rows, vocab, hidden, 4)
    elementwise("select", 1, 4 * rows * vocab, 0)
    elementwise("copy to the host", 1, 8 * rows, 8 * rows)
    return total_us
}

# ---- tables --------------------------------------------------------------------------------------

function by_kernel(rows,    us) {
    printf "%s, %d row%s after %d tokens, by kernel:\n\n", model, rows, (rows > 1 ? "s" : ""), \
        context
    print "| kernel | launches a pass | MB read | MB written | MB from L2 | GFLOP | bound " \
        "| us each | us a pass |\n|---|---|---|---|---|---|---|---|---|"
    detail = 1
    us = pass(model, rows, context)
    detail = 0
    printf "| all, and %.0f us of the host | %d | | | | | | | %.0f |\n\n", host_us, launches, us
}

function by_context(    i, k, n, at, us) {
    n = split("128 512 4096", at, " ")
    print "Time of one token, and the share of the achievable bandwidth that its bytes take:\n"
    print "| model | GB of weights | ms after 128, share of the bandwidth | after 512 " \
        "| after 4096 |\n|---|---|---|---|---|"
    for (i = 1; i <= models; i++) {
        pass(names[i], 1, 0)
        printf "| %s | %.2f |", names[i], weights_bytes * 1e-9
        for (k = 1; k <= n; k++) {
            us = pass(names[i], 1, at[k])
            printf " %.3f, %.0f %% |", us * 1e-3, \
                100 * total_bytes / (memory * achievable) / us * 1e6
        }
        printf "\n"
    }
    printf "\n"
}

function by_rows(    i, k, c, n, m, at, after, alone) {
    print "Time of a pass of n tokens over that of one:\n"
    n = split("2 4 8 16 64 128", at, " ")
    m = split("128 512 4096", after, " ")
    print "| model | context | t(2)/t(1) | t(4)/t(1) | t(8)/t(1) | t(16)/t(1) | t(64)/t(1) " \
        "| t(128)/t(1) |\n|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= models; i++)
        for (c = 1; c <= m; c++) {
            alone = pass(names[i], 1, after[c])
            printf "| %s | %d |", names[i], after[c]
            for (k = 1; k <= n; k++)
                printf " %.2f |", pass(names[i], at[k], after[c]) / alone
            printf "\n"
        }
}

# One row: an assumption changed alone.
function changed(text,    alone) {
    alone = pass(model, 1, context)
    printf "| %s | %.3f | %.2f | %.2f | %.2f |\n", text, alone * 1e-3, \
        pass(model, 4, context) / alone, pass(model, 16, context) / alone, \
        pass(model, 64, context) / alone
}

function by_assumption(    old) {
    printf "%s after %d tokens, with one assumption changed:\n\n", model, context
    print "| assumption | ms of t(1) | t(4)/t(1) | t(16)/t(1) | t(64)/t(1) |\n|---|---|---|---|---|"
    changed("as above")
    old = achievable
    achievable = .81
    changed("achievable share of the bandwidth 0.81")
    achievable = .97
    changed("achievable share of the bandwidth 0.97")
    achievable = old
    old = l2
    l2 = 4.8e12
    changed("L2 4.8 TB/s")
    l2 = 7.1e12
    changed("L2 7.1 TB/s")
    l2 = old
    old = gap_us
    gap_us = .3
    changed("gap 0.3 us")
    gap_us = 2
    changed("gap 2 us")
    gap_us = old
    old = busy
    busy = .3
    changed("attention at 0.3 of the ordinary cores' peak")
    busy = old
    old = issue
    issue = .5
    changed("GEMV kernel issues half of the instructions that could be")
    issue = old
}

BEGIN { FS = "\t" }

!/^#/ && NF == 10 {
    names[++models] = $1
    for (i = 2; i <= NF; i++)
        shape[$1, i] = $i
}

END {
    assume()
    if (!((model, 2) in shape)) {
        print "roofline.awk: no model " model " in the table; -v model=NAME" > "/dev/stderr"
        exit 2
    }
    if (show == "weights") {
        for (i = 1; i <= models; i++) {
            pass(names[i], 1, 0)
            printf "%s\t%.0f\n", names[i], weights_bytes
        }
        exit
    }
    print "**A calculated prediction, not a measurement.**\n"
    assumptions()
    by_kernel(1)
    by_kernel(16)
    by_kernel(64)
    by_context()
    by_rows()
    print ""
    by_assumption()
}
