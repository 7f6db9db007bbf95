// SPDX-License-Identifier: Apache-2.0
// Memory of the CPU backend, aligned and in huge pages, and random numbers in it.
#include "live/device/cpu.h"

#include "base/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ALIGN = 64,
    HUGE_PAGE = 2 << 20,
    FEW = 1 << 20,     // from this number of bytes a block has its own mapping
    SHARED = 16 << 10, // from this number of bytes a smaller block is in a page shared by blocks
};

// A mapping that begins at a huge-page boundary and contains the head of its first block.
typedef struct cpu_page {
    void *start;   // of the mapping
    size_t mapped; // bytes
    size_t used;   // bytes used, of HUGE_PAGE if blocks share it
    int holders;   // blocks in it, and the backend while it adds more
} cpu_page;

// Precedes every block.
typedef union head {
    cpu_page *page; // NULL: the block is from the heap
    char room[ALIGN];
} head;

_Static_assert(sizeof(cpu_page) <= ALIGN, "a block in a page would not be aligned");

// Weights are read sequentially, and small pages would cost a TLB miss and a restart of the
// prefetcher every 4 KiB. The memory is zero and is committed on first write.
static cpu_page *map_page(size_t bytes)
{
    // Complete huge pages: otherwise a matrix of 1 or 3 MB would lie partly or entirely in small
    // ones.
    bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    size_t mapped = bytes + HUGE_PAGE;
    char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    uintptr_t aligned = ((uintptr_t)start + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    cpu_page *page = (cpu_page *)(start + (aligned - (uintptr_t)start));
    madvise(page, bytes, MADV_HUGEPAGE); // advice: its failure is no error
    *page = (cpu_page){start, mapped, ALIGN, 1};
    return page;
}

static void release(cpu_page *page)
{
    if (page && !--page->holders)
        munmap(page->start, page->mapped);
}

static head *put_in(cpu_page *page, size_t bytes)
{
    head *h = (head *)((char *)page + page->used);
    page->used += bytes;
    h->page = page;
    return h;
}

// Allocates a block with its own mapping.
static head *map_block(size_t bytes)
{
    cpu_page *page = map_page(bytes + ALIGN);
    return page ? put_in(page, bytes) : NULL;
}

// Allocates a block in a shared page: a matrix of some 100 KB, or the keys of a layer, is then read
// like a large one. The memory of a page is not reused before all of its blocks have been freed.
static head *share_page(cpu_backend *c, size_t bytes)
{
    if (!c->page || HUGE_PAGE - c->page->used < bytes) {
        cpu_page *page = map_page(HUGE_PAGE);
        if (!page)
            return NULL;
        release(c->page);
        c->page = page;
    }
    c->page->holders++;
    return put_in(c->page, bytes);
}

static head *block_of(live_backend *b, size_t bytes)
{
    if (bytes >= FEW)
        return map_block(bytes);
    if (b && bytes >= SHARED)
        return share_page(cpu_of(b), bytes);
    head *h = aligned_alloc(ALIGN, bytes);
    return h ? memset(h, 0, bytes) : NULL;
}

int live_cpu_alloc(live_backend *b, void *out, size_t bytes, dsc_error *err)
{
    head *h = NULL;
    if (bytes < SIZE_MAX / 2)
        h = block_of(b, (bytes + sizeof *h + ALIGN - 1) / ALIGN * ALIGN);
    void *p = h ? h + 1 : NULL;
    memcpy(out, &p, sizeof p); // a pointer of any type
    return h ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory: %zu bytes on the CPU", bytes);
}

void live_cpu_free(live_backend *b, void *p)
{
    (void)b;
    if (!p)
        return;
    head *h = (head *)p - 1;
    if (h->page)
        release(h->page);
    else
        free(h);
}

void live_cpu_leave_page(cpu_backend *c)
{
    release(c->page);
    c->page = NULL;
}

int live_cpu_copy(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err)
{
    (void)b;
    (void)err;
    if (bytes)
        memmove(to, from, bytes);
    return DSC_OK;
}

int live_cpu_scratch(cpu_scratch *s, size_t bytes, dsc_error *err)
{
    if (bytes <= s->bytes)
        return DSC_OK;
    // Grows by at least half, because a cache that fills needs a little more with every token.
    void *data;
    const size_t more = s->bytes + s->bytes / 2;
    bytes = bytes > more ? bytes : more;
    live_cpu_free(NULL, s->data);
    *s = (cpu_scratch){0};
    int rc = live_cpu_alloc(NULL, &data, bytes, err);
    if (rc)
        return rc;
    *s = (cpu_scratch){data, bytes};
    return DSC_OK;
}

// Number i is made of word i % 4 of the Philox counter (stream, i / 4, DSC_RNG_WEIGHTS): its upper
// 24 bits, as a signed number of steps of 2^-23, times the limit as a float, rounded to nearest,
// then converted to the dtype. Every step but these two is exact, so that every device computes the
// same bits.
static void fill_part(void *p, dsc_dtype dtype, int64_t from, int64_t to, uint64_t seed,
                      uint64_t stream, float limit)
{
    uint32_t word[4];
    for (int64_t i = from; i < to; i++) {
        if (i == from || i % 4 == 0)
            dsc_rng_words(seed, stream, (uint32_t)(i / 4), DSC_RNG_WEIGHTS, word);
        int32_t step = (int32_t)(word[i % 4] >> 8) - (1 << 23);
        float x = (float)step * 0x1p-23f * limit;
        if (dtype == DSC_F32)
            ((float *)p)[i] = x;
        else
            ((uint16_t *)p)[i] = dtype == DSC_BF16 ? live_to_bf16(x) : live_to_f16(x);
    }
}

int live_cpu_fill(live_backend *b, void *p, dsc_dtype dtype, int64_t count, uint64_t seed,
                  uint64_t stream, double limit, dsc_error *err)
{
    enum { BLOCK = 1 << 16 };
    if (count > (int64_t)UINT32_MAX * 4)
        return dsc_fail(err, DSC_EUSAGE,
                        "fill: %" PRId64 " random numbers exceed the limit of "
                        "2^34",
                        count);
    if (dtype != DSC_F32 && dtype != DSC_BF16 && dtype != DSC_F16)
        return dsc_fail(err, DSC_EUSAGE, "fill: %s is not F32, BF16 or F16", dsc_dtype_name(dtype));
#pragma omp parallel for schedule(static) num_threads(cpu_threads(b, count))
    for (int64_t from = 0; from < count; from += BLOCK)
        fill_part(p, dtype, from, from + BLOCK < count ? from + BLOCK : count, seed, stream,
                  (float)limit);
    return DSC_OK;
}

int live_cpu_available(live_backend *b, double *free_bytes, double *total_bytes, dsc_error *err)
{
    (void)b;
    char line[256];
    unsigned long long kib;
    int found = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemTotal: %llu kB", &kib) == 1) {
            *total_bytes = 1024. * (double)kib;
            found |= 1;
        } else if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            *free_bytes = 1024. * (double)kib;
            found |= 2;
        }
    }
    if (f)
        fclose(f);
    if (found != 3)
        return dsc_fail(err, DSC_EABSENT, "/proc/meminfo lacks MemTotal or MemAvailable");
    return DSC_OK;
}
