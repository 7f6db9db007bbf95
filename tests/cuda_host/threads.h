// SPDX-License-Identifier: Apache-2.0
// Threads of the emulated device: contexts that run in sequence until each reaches a barrier, a
// vote or a shuffle; blocks run in sequence. Behavior that CUDA leaves undefined ends the program
// with a message: a thread that has returned while its warp or block waits, threads that wait for
// different things, asynchronous copies that are never waited for or whose source changes.
//
// An asynchronous copy is performed when it is waited for, and its destination is NaN until then.
#ifndef DSC_TESTS_THREADS_H
#define DSC_TESTS_THREADS_H

#include "order.h"
#include "settings.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>

#include <sys/mman.h>
#include <ucontext.h>

namespace emulated
{
enum wait_for { NOTHING, EXCHANGE, WARP, BLOCK, PREVIOUS, THE_END };
enum { MOST_THREADS = 1024, LANES = 32, STACK_BYTES = 128 << 10, PLACES = 16, ENDS = 64 };

// A place to resume. Switching between ucontexts takes a system call, and ThreadSanitizer keeps
// books on setjmp that fit no fibers; so where we know how, the registers that a call preserves are
// all that is switched.
#ifdef __x86_64__
typedef void *context; // the top of its stack
extern "C" void emulated_switch(context *from, context to);
asm(".text\n"
    "emulated_switch:\n"
    "pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
    "movq %rsp, (%rdi)\n"
    "movq %rsi, %rsp\n"
    "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp\n"
    "ret\n");

// Continues at `to` until `from` is resumed.
static inline EMULATED_UNSEEN void switch_to(context &to, context &from)
{
    emulated_switch(&from, to);
}

// Makes a context that begins with `entry`, which never returns.
static EMULATED_UNSEEN void prepare(context &fresh, char *stack, void (*entry)())
{
    void **const top = (void **)(stack + STACK_BYTES) - 8;
    memset(top, 0, 8 * sizeof *top);
    top[6] = (void *)entry; // after six registers; before it, the stack is aligned as by a call
    fresh = top;
}
#else
typedef ucontext_t context;
static EMULATED_UNSEEN void switch_to(context &to, context &from)
{
    swapcontext(&from, &to);
}

static EMULATED_UNSEEN void prepare(context &fresh, char *stack, void (*entry)())
{
    getcontext(&fresh);
    fresh.uc_stack.ss_sp = stack;
    fresh.uc_stack.ss_size = STACK_BYTES;
    fresh.uc_link = nullptr;
    makecontext(&fresh, entry, 0);
}
#endif

struct copy {
    uint4 *to;
    const uint4 *from; // NULL: zeros
    uint4 value;       // at the beginning of the copy
    int group;
};

struct thread {
    context at;
    bool begun;
    wait_for waits;
    int turn;       // of its warp's exchanges
    int poll;       // of its block's votes
    int barrier[2]; // those of its warp and of its block that it has passed
    bool waited;    // for the previous kernel
    order::fenced fenced;
    std::vector<copy> copies; // not performed yet
    int group;                // of the copies to come
    void *fiber;
};

// What a block occupies. The next block in the same place follows it.
struct place {
    thread threads[MOST_THREADS];
    char *stacks;                                         // [MOST_THREADS][STACK_BYTES]
    order::point warp[MOST_THREADS / LANES][2], block[2]; // barriers, by the parity of the number
    order::point end;                                     // of the last block
    void *fiber;                                          // of all its threads, or NULL
    std::shared_ptr<void> dynamic_shared;
};

// A kernel that runs.
struct grid {
    const void *kernel;
    dim3 blocks;
    int threads;
    size_t shared; // bytes
    std::shared_ptr<const std::function<void()>> body;
    order::point *previous = nullptr; // the end of the kernel that it may overlap with
    order::point *end = nullptr;      // its own
    bool waited = false;              // one of its threads has waited for the previous kernel
};

static place *places[2][PLACES]; // kernels alternate between both halves
static place *here;
static grid now;
static dim3 block;
static int current;
static context scheduler;
static void *scheduler_fiber;
static void *dynamic_shared; // of the block, on the heap, so that a sanitizer sees its end
static volatile uint64_t
    exchange[2][MOST_THREADS];    // values that lanes offer, by the parity of the turn
static volatile int votes[3];     // of a vote, the previous one and the next one
static std::recursive_mutex busy; // streams of different threads take turns

// On the heap, as all points are, because static memory is forgotten block by block.
static struct points {
    order::point host;       // what the host has waited for
    order::point all;        // ends of all threads so far
    order::point ends[ENDS]; // of kernels; so many launches apart, two share one
} &points = *new struct points();
static std::vector<std::shared_ptr<const void>>
    kept; // used by threads that the host has not waited for

[[noreturn]] static inline EMULATED_UNSEEN void stop(const char *what)
{
    fprintf(stderr, "emulated CUDA: %s (block %u %u %u, thread %d)\n", what, block.x, block.y,
            block.z, current);
    abort();
}

static inline EMULATED_UNSEEN thread &self()
{
    return here->threads[current];
}

// Returns to the scheduler until it resumes the thread.
static EMULATED_UNSEEN void pause(wait_for what)
{
    thread &t = self();
    t.waits = what;
    order::enter_fiber(scheduler_fiber);
    switch_to(scheduler, t.at);
}

// A barrier that orders memory; `barriers` has its points of even and odd number.
static EMULATED_UNSEEN void meet(wait_for what, order::point (&barriers)[2])
{
    order::point &p = barriers[self().barrier[what == BLOCK]++ % 2];
    order::publish(p);
    pause(what);
    order::receive(p);
}

static inline EMULATED_UNSEEN void meet_warp()
{
    meet(WARP, here->warp[current / LANES]);
}
static inline EMULATED_UNSEEN void meet_block()
{
    meet(BLOCK, here->block);
}

// Runs the thread's part of block after block.
static EMULATED_UNSEEN void run_thread()
{
    for (;;) {
        order::receive(points.host);
        order::receive(here->end);
        (*now.body)();
        if (!self().copies.empty())
            stop("a thread ends before copies that it has not waited for");
        order::publish(here->end);
        order::publish(*now.end);
        order::publish(points.all);
        pause(THE_END);
    }
}

static EMULATED_UNSEEN void resume(int number)
{
    current = number;
    thread &t = self();
    if (!t.begun)
        prepare(t.at, here->stacks + (size_t)number * STACK_BYTES, run_thread);
    t.begun = true;
    order::enter_fiber(here->fiber ? here->fiber : t.fiber);
    switch_to(t.at, scheduler);
}

// Resumes threads [from, to) when all of them wait for `what`.
static inline EMULATED_UNSEEN void release(int from, int to, wait_for what)
{
    for (int t = from; t < to; t++)
        if (here->threads[t].waits != what)
            return;
    for (int t = from; t < to; t++)
        here->threads[t].waits = NOTHING;
}

// Resumes those of `count` threads that wait for the previous kernel; false: there are none.
static EMULATED_UNSEEN bool release_waiting(int count)
{
    bool any = false;
    for (int t = 0; t < count; t++)
        if (here->threads[t].waits == PREVIOUS) {
            here->threads[t].waits = NOTHING;
            any = true;
        }
    return any;
}

static EMULATED_UNSEEN void begin_thread(thread &t)
{
    if (!t.fiber && !here->fiber && !order::off)
        t.fiber = order::new_fiber();
    t.waits = NOTHING;
    t.turn = t.poll = t.barrier[0] = t.barrier[1] = t.group = 0;
    t.waited = false;
    t.fenced = order::fenced();
}

static EMULATED_UNSEEN void run_block()
{
    const int count = now.threads;
    for (int i = 0; i < 3; i++)
        votes[i] = 0;
    for (int t = 0; t < count; t++)
        begin_thread(here->threads[t]);
    // Every other block runs its threads in reverse, so that reading data before it is written
    // fails in one of the two orders.
    static bool backwards;
    backwards = !backwards;
    for (int ended = 0; ended < count;) {
        bool moved = false;
        for (int i = 0; i < count; i++) {
            const int t = backwards ? count - 1 - i : i;
            if (here->threads[t].waits != NOTHING)
                continue;
            moved = true;
            resume(t);
            ended += here->threads[t].waits == THE_END;
        }
        // What precedes the wait for the previous kernel comes first in all threads.
        if (!moved && !release_waiting(count))
            stop("threads wait for what never happens: some have returned, or wait elsewhere");
        for (int w = 0; w < count; w += LANES) {
            release(w, std::min(w + LANES, count), EXCHANGE);
            release(w, std::min(w + LANES, count), WARP);
        }
        release(0, count, BLOCK);
    }
}

static EMULATED_UNSEEN place *new_place()
{
    place *p = new place();
    void *stacks = mmap(nullptr, (size_t)MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED)
        stop("no memory");
    p->stacks = (char *)stacks;
    p->fiber = emulated_whole_blocks ? order::new_fiber() : nullptr;
    return p;
}

// Begins block number `number` of the grid. Dynamic shared memory begins as NaN.
static EMULATED_UNSEEN void enter_place(uint64_t number)
{
    static int half;
    const uint64_t most = emulated_whole_blocks ? PLACES : 1;
    half ^= number == 0 && emulated_whole_blocks;
    place *&p = places[half][number % most];
    here = p = p ? p : new_place();
    if (number < most) {
        void *bytes = nullptr;
        if (now.shared && posix_memalign(&bytes, 128, now.shared))
            stop("no memory");
        here->dynamic_shared = std::shared_ptr<void>(bytes, free);
        kept.push_back(here->dynamic_shared);
    }
    dynamic_shared = here->dynamic_shared.get();
    order::new_static_shared();
    if (now.shared)
        memset(dynamic_shared, 0xff, now.shared);
}

// Whether the launch is checked (order.h).
static EMULATED_UNSEEN bool is_due(const void *kernel)
{
    static std::map<const void *, unsigned> launches;
    static bool before;
    if (!order::CHECKED)
        return false;
    const bool due = launches[kernel]++ % emulated_every == 0, is = due || before;
    before = due;
    return is;
}

// Every other grid runs its blocks in reverse, because a device does not define which block ends
// last either.
static EMULATED_UNSEEN void run_grid(const grid &g)
{
    const order::unseen own;
    static bool backwards;
    backwards = !backwards;
    now = g;
    kept.push_back(now.body);
    scheduler_fiber = order::this_fiber();
    order::new_grid();
    const uint64_t blocks = (uint64_t)g.blocks.x * g.blocks.y * g.blocks.z;
    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t b = backwards ? blocks - 1 - i : i;
        block = dim3((unsigned)(b % g.blocks.x), (unsigned)(b / g.blocks.x % g.blocks.y),
                     (unsigned)(b / g.blocks.x / g.blocks.y));
        enter_place(i);
        run_block();
    }
    if (!now.waited)
        stop("a kernel ends without having waited for the one before it");
}

// The host waits for everything.
static inline void settle()
{
    const std::lock_guard<std::recursive_mutex> turn(busy);
    order::receive(points.all);
    kept.clear();
}

// Runs a kernel after, or overlapping with, the last one of its stream.
static inline void launch(grid g, bool overlaps, order::point *&last)
{
    static int number;
    const bool due = is_due(g.kernel);
    if (overlaps && due)
        g.previous = last;
    else
        settle();
    last = g.end = &points.ends[number++ % ENDS];
    order::publish(points.host);
    {
        const order::unchecked those(!due);
        run_grid(g);
    }
    order::publish(*last);
}

// --- exchanges of a warp -------------------------------------------------------------------------

// The value that `lane` of the thread's warp offers.
template <typename T> static EMULATED_UNSEEN T shuffle(unsigned mask, T mine, int lane)
{
    const int first = current / LANES * LANES, turn = self().turn++ % 2;
    if (mask != 0xffffffffu)
        stop("a part of a warp");
    static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
    uint64_t bits = 0;
    memcpy(&bits, &mine, sizeof mine);
    exchange[turn][current] = bits;
    pause(EXCHANGE);
    bits = exchange[turn][first + lane % LANES];
    T theirs;
    memcpy(&theirs, &bits, sizeof theirs);
    return theirs;
}

// The values that all lanes of the thread's warp offer.
static EMULATED_UNSEEN void offers(uint64_t (&all)[LANES], uint64_t mine)
{
    const int turn = self().turn % 2;
    shuffle(0xffffffffu, mine, 0);
    for (int lane = 0; lane < LANES; lane++)
        all[lane] = exchange[turn][current / LANES * LANES + lane];
}

// How many threads of the block vote for it.
static EMULATED_UNSEEN int count_votes(bool vote)
{
    const int poll = self().poll++;
    votes[(poll + 1) % 3] = 0; // that of two polls before, which all have read
    votes[poll % 3] = votes[poll % 3] + vote;
    meet_block();
    return votes[poll % 3];
}

// --- asynchronous copies -------------------------------------------------------------------------

// Begins a copy of 16 bytes into shared memory, of zeros if not `there`. The device may read and
// write at any time until the copy is waited for: here it reads at both ends and writes at both.
static inline void begin_copy(uint4 *to, const uint4 *from, bool there)
{
    const copy c = {to, there ? from : nullptr, there ? *from : uint4{}, self().group};
    self().copies.push_back(c);
    memset((void *)to, 0xff, sizeof *to);
}

static inline void end_group()
{
    self().group++;
}

// Waits for all groups but the last `left`.
static inline void await_copies(int left)
{
    std::vector<copy> &copies = self().copies;
    size_t kept_copies = 0;
    for (const copy &c : copies) {
        if (c.group >= self().group - left) {
            copies[kept_copies++] = c;
            continue;
        }
        const uint4 value = c.from ? *c.from : uint4{};
        if (memcmp(&value, &c.value, sizeof value))
            stop("the source of an asynchronous copy has changed before the end of the copy");
        *c.to = value;
    }
    copies.resize(kept_copies);
}
} // namespace emulated

// A number that is read where it is used.
template <unsigned (*READ)()> struct emulated_index {
    operator unsigned() const
    {
        return READ();
    }
};
#define EMULATED_NUMBER(name, value)                                                               \
    static inline EMULATED_UNSEEN unsigned name()                                                  \
    {                                                                                              \
        return (unsigned)(value);                                                                  \
    }
EMULATED_NUMBER(emulated_thread, emulated::current)
EMULATED_NUMBER(emulated_threads, emulated::now.threads)
EMULATED_NUMBER(emulated_block_x, emulated::block.x)
EMULATED_NUMBER(emulated_block_y, emulated::block.y)
EMULATED_NUMBER(emulated_block_z, emulated::block.z)
EMULATED_NUMBER(emulated_blocks_x, emulated::now.blocks.x)

static const struct {
    emulated_index<emulated_thread> x;
} threadIdx = {};
static const struct {
    emulated_index<emulated_threads> x;
} blockDim = {};
static const struct {
    emulated_index<emulated_block_x> x;
    emulated_index<emulated_block_y> y;
    emulated_index<emulated_block_z> z;
} blockIdx = {};
static const struct {
    emulated_index<emulated_blocks_x> x;
} gridDim = {};

static inline void __syncthreads()
{
    emulated::meet_block();
}
static inline void __syncwarp()
{
    emulated::meet_warp();
}
template <typename T> static inline T __shfl_sync(unsigned mask, T x, int lane)
{
    return emulated::shuffle(mask, x, lane);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T x, int step)
{
    return emulated::shuffle(mask, x, (int)(threadIdx.x % 32) ^ step);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T x, int step)
{
    const int lane = (int)(threadIdx.x % 32);
    return emulated::shuffle(mask, x, lane < step ? lane : lane - step);
}
static inline int __syncthreads_count(bool vote)
{
    return emulated::count_votes(vote);
}
static inline unsigned __ballot_sync(unsigned mask, bool vote)
{
    unsigned all = 0;
    uint64_t votes[32];
    if (mask != 0xffffffffu)
        emulated::stop("a part of a warp");
    emulated::offers(votes, vote);
    for (int lane = 0; lane < 32; lane++)
        all |= (unsigned)votes[lane] << lane;
    return all;
}

// Atomic operations are relaxed, as CUDA's.
static inline unsigned atomicAdd(unsigned *p, unsigned x)
{
    order::atomic(emulated::self().fenced, p);
    return __atomic_fetch_add(p, x, __ATOMIC_RELAXED);
}
static inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long x)
{
    order::atomic(emulated::self().fenced, p);
    return __atomic_fetch_add(p, x, __ATOMIC_RELAXED);
}
static inline unsigned atomicInc(unsigned *p, unsigned most)
{
    order::atomic(emulated::self().fenced, p);
    unsigned before = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &before, before >= most ? 0 : before + 1, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return before;
}
static inline void __threadfence()
{
    order::fence(emulated::self().fenced);
}
template <typename T> static inline T __ldcg(const T *p)
{
    return *p;
}

// A kernel waits for the one before it, then lets the one after it begin.
static inline EMULATED_UNSEEN void cudaGridDependencySynchronize()
{
    emulated::pause(emulated::PREVIOUS);
    emulated::self().waited = emulated::now.waited = true;
    if (emulated::now.previous)
        order::receive(*emulated::now.previous);
}
static inline EMULATED_UNSEEN void cudaTriggerProgrammaticLaunchCompletion()
{
    if (!emulated::self().waited)
        emulated::stop("a thread lets the next kernel begin before it has waited itself");
}

#endif
