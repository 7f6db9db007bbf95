// SPDX-License-Identifier: Apache-2.0
// The work of an attention block: the list of slots that a token attends to, its cut into splits,
// and the block's own part.
//
// The list. It contains the slots of the prefix, then the slots of the token's mask in ascending
// order. Entry i of the list is position i of the token's text, so the list is the same whether the
// token is decoded alone or in a tree, and whichever slots lie between. The list is cut into splits
// and these into chunks of 32 entries, by index alone; chunk c of a split belongs to warp c % 4, a
// chunk is one step of an online softmax, and warps and splits are merged in order. So the order of
// all sums follows from the indices, never from the number of tokens or from which block arrives
// first: a token's result does not depend on the other tokens of its pass, and splits, chunks and
// entries that it does not attend to change no bit of it.
//
// The splits. A pass is captured once and replayed for longer texts, so the grid covers the whole
// cache while the cut may depend on the index only: splits of 128 entries before index 4096, of 256
// before 8192, and of 512 from there on. At short contexts a split is one chunk for each of the
// four warps, so every further 128 entries occupy another multiprocessor and no block takes longer;
// eight key heads fill 128 multiprocessors from 2048 entries on. From 4096 entries on there are
// enough blocks, and longer splits keep the merge and the grid small: a split costs the merge 8
// bytes per number of each output (written and read), and a cache of 131072 slots has 288 splits
// instead of 1024. A block whose split begins after the text, or ends before the window, returns
// before it waits for the previous kernel, after one or two loads.
#ifndef DSC_LIVE_ATTEND_CUH
#define DSC_LIVE_ATTEND_CUH

#include "live/device/cuda/cuda.cuh"

enum {
    ATTEND_WARPS = 4,
    ATTEND_ROWS = 8,     // queries of a block
    ATTEND_SPLIT = 128,  // entries of a short split: a chunk for each warp
    ATTEND_SHORT = 4096, // index before which splits are short
    ATTEND_LONG = 8192,  // index from which splits are four times as long; twice between
};

typedef struct attend_job {
    void *out; // [rows][heads * head] in `dtype`
    dsc_dtype dtype;
    const float *qkv; // [rows][(heads + 2 kv_heads) * head]
    const void *k, *v;
    int heads, kv_heads, group, head;
    int64_t slots, window;
    int first_token, tokens; // of each sequence, served by this launch
    float scale;
    int splits;        // of the whole cache; 1: no partial results
    int prefetch;      // bytes of the KV cache per block; 0: none
    float *part;       // [tokens of all sequences][heads][splits][head]
    float2 *sums;      // [...][splits]: largest score, sum of exponentials
    unsigned *arrived; // [groups], 0 between launches
} attend_job;

// --- splits --------------------------------------------------------------------------------------

// The index at which split s begins.
static __host__ __device__ int64_t split_begin(int64_t s)
{
    const int64_t middle = ATTEND_SHORT / ATTEND_SPLIT; // the first split of twice the length
    const int64_t last = middle + (ATTEND_LONG - ATTEND_SHORT) / (2 * ATTEND_SPLIT);
    return s < middle ? s * ATTEND_SPLIT
           : s < last ? ATTEND_SHORT + (s - middle) * 2 * ATTEND_SPLIT
                      : ATTEND_LONG + (s - last) * 4 * ATTEND_SPLIT;
}

// The split that contains an index.
static __host__ __device__ int64_t split_of(int64_t index)
{
    const int64_t middle = ATTEND_SHORT / ATTEND_SPLIT;
    const int64_t last = middle + (ATTEND_LONG - ATTEND_SHORT) / (2 * ATTEND_SPLIT);
    return index < ATTEND_SHORT  ? index / ATTEND_SPLIT
           : index < ATTEND_LONG ? middle + (index - ATTEND_SHORT) / (2 * ATTEND_SPLIT)
                                 : last + (index - ATTEND_LONG) / (4 * ATTEND_SPLIT);
}

// --- what a token sees ---------------------------------------------------------------------------

typedef struct sight {
    const uint64_t *mask;
    int tail;   // index at which its mask begins
    int length; // number of entries
    int low;    // entries up to here are before the window; -1: none
    int shared; // leading entries whose slot equals their index
} sight;

static __device__ sight look(const attend_job &j, const cuda_pass &pass, int64_t token, int shift)
{
    sight s;
    s.mask = pass.mask + token * pass.words;
    const int prefix = *pass.prefix + shift, position = pass.position[token] + shift;
    int seen = 0, run = 0;
    for (int w = 0; w < (int)pass.words; w++) {
        const uint64_t bits = s.mask[w];
        if (run == w * 64)
            run += ~bits ? __ffsll((long long)~bits) - 1 : 64;
        seen += __popcll(bits);
    }
    // A window may have removed slots from the mask; then too, the last index is the token's
    // position, as far as the cache reaches.
    s.tail = prefix;
    if (position + 1 - seen > prefix && position < j.slots)
        s.tail = position + 1 - seen;
    s.length = s.tail + seen;
    s.low = j.window > 0 && position >= j.window ? (int)(position - j.window) : -1;
    s.shared = s.tail == prefix ? prefix + run : prefix;
    return s;
}

// The slot of an entry of the list, tail <= index < length.
static __device__ int slot_of(const sight &s, int index, int prefix, int words)
{
    int left = index - s.tail; // set bits before the wanted one
    for (int w = 0; w < words; w++) {
        uint64_t bits = s.mask[w];
        const int count = __popcll(bits);
        if (left < count) {
            for (; left > 0; left--)
                bits &= bits - 1;
            return prefix + w * 64 + __ffsll((long long)bits) - 1;
        }
        left -= count;
    }
    return 0; // unreachable: index < s.length
}

// The queries of a block and the entries that it processes. The queries of a key head are numbered
// token by token: query f is head f % group of token f / group.
typedef struct attend_block {
    int kv_head, sequence;
    int from, rows;     // queries [from, from + rows)
    int token0, tokens; // of the launch
    int prefix;         // entries
    int shared, low;    // minima over its tokens
    int first_split,
        splits;     // [first_split, splits): those in which one of its tokens attends to an entry
    int begin, end; // entries of the block's own split
} attend_block;

// Returns false if the block has no work. It reads the lists only, which are on the device before
// the first kernel of a pass begins; after a long cache most blocks end at the first test.
static __device__ bool find_block(attend_block &b, const attend_job &j, const cuda_pass &pass,
                                  sight (&sights)[ATTEND_ROWS])
{
    const bool whole = j.splits == 1;
    b.kv_head = (int)(blockIdx.z % (unsigned)j.kv_heads);
    b.sequence = (int)(blockIdx.z / (unsigned)j.kv_heads);
    b.from = (int)blockIdx.x * ATTEND_ROWS;
    b.rows = min(j.tokens * j.group - b.from, (int)ATTEND_ROWS);
    b.token0 = b.from / j.group;
    b.tokens = (b.from + b.rows - 1) / j.group - b.token0 + 1;
    const int shift = cuda_shift(pass, b.sequence);
    b.prefix = *pass.prefix + shift;
    b.begin = whole ? 0 : (int)split_begin(blockIdx.y);
    const int token = j.first_token + b.token0;
    int length = b.prefix + 64 * (int)pass.words; // an upper bound
    for (int t = 0; t < b.tokens; t++)
        length = max(length, pass.position[token + t] + shift + 1);
    if (b.begin >= length)
        return false;
    if ((int)threadIdx.x < b.tokens)
        sights[threadIdx.x] = look(j, pass, token + (int)threadIdx.x, shift);
    __syncthreads();
    int first = INT32_MAX;
    length = 0;
    b.shared = b.low = INT32_MAX;
    for (int t = 0; t < b.tokens; t++) {
        const sight &s = sights[t];
        length = max(length, s.length);
        b.shared = min(b.shared, s.shared);
        b.low = min(b.low, s.low);
        first = min(first, min(s.low + 1, s.tail));
    }
    b.first_split = whole ? 0 : (int)split_of(first);
    b.splits = whole ? 1 : (int)split_of(length - 1) + 1;
    b.end = whole ? length : min((int)split_begin(blockIdx.y + 1), length);
    return (int)blockIdx.y >= b.first_split && (int)blockIdx.y < b.splits;
}

#endif
