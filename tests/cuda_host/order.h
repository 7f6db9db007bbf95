// SPDX-License-Identifier: Apache-2.0
// What orders the memory accesses of the emulated device. A build with -fsanitize=thread reports
// every two accesses to one address, one of them a write, that none of these rules orders (two
// atomic operations excepted), in whichever sequence the emulation has run them. In other builds
// the functions are empty.
//
// What ThreadSanitizer takes for a thread is a fiber that the emulation names, and its time grows
// with their number. So there are two checks: each thread of a block is a fiber, while blocks and
// kernels follow each other; or each block is a fiber (emulated_whole_blocks), while its threads
// follow each other. For a shorter check, one launch in emulated_every of each kernel is checked,
// with the launch after it; the others run as if the host did their work.
//
// The rules (CUDA C++ Programming Guide; PTX ISA, "Memory Consistency Model"):
//   - __syncwarp orders the threads of a warp, __syncthreads and its votes those of a block;
//   - shuffles and votes of a warp order nothing, they only exchange registers;
//   - an atomic operation orders nothing by itself. If a thread executes __threadfence and then an
//     atomic operation, and another thread an atomic operation on the same address later and then
//     __threadfence, what the first did before its fence precedes what the second does after its;
//   - blocks of a grid are concurrent, and nothing else orders them;
//   - a kernel begins after all that the host has waited for; in the ordinary way also after all
//     earlier work of the stream. With programmatic dependent launch, only what follows its
//     cudaGridDependencySynchronize comes after the kernel before it, and after earlier ones only
//     if that kernel has waited in turn;
//   - copies, and work of the host, come after all earlier work.
//
// Sixteen consecutive blocks are concurrent in the second check: a block follows the sixteenth
// before it.
#ifndef DSC_TESTS_ORDER_H
#define DSC_TESTS_ORDER_H

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include <stdint.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

extern "C" {
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void __tsan_java_init(unsigned long begin, unsigned long bytes);
void __tsan_java_alloc(unsigned long begin, unsigned long bytes);
void __tsan_java_free(unsigned long begin, unsigned long bytes);
extern char __bss_start[], _end[]; // static variables, by the linker

// The CPU's operations are not instrumented, so that nothing is known of their own threads.
const char *__tsan_default_suppressions();
const char *__tsan_default_suppressions()
{
    return "race:live/device/cpu_";
}
// Little memory for each of more than a thousand fibers.
const char *__tsan_default_options();
const char *__tsan_default_options()
{
    return "history_size=1:atexit_sleep_ms=0";
}
}
#define EMULATED_UNSEEN __attribute__((no_sanitize("thread")))
#else
#define EMULATED_UNSEEN
#endif

namespace order
{
// A point in time of those who have published it: what they did before precedes all that is done
// by those who receive it.
struct alignas(8) point {
    char at;
};

#ifdef __SANITIZE_THREAD__
enum { CHECKED = 1 };
static bool off; // a kernel runs that is not checked

// During its lifetime, if `is`, nothing is checked and threads are not told apart.
struct unchecked {
    EMULATED_UNSEEN explicit unchecked(bool is)
    {
        off = is;
    }
    EMULATED_UNSEEN ~unchecked()
    {
        off = false;
    }
};

static inline EMULATED_UNSEEN void publish(point &p)
{
    if (!off)
        __tsan_release(&p);
}
static inline EMULATED_UNSEEN void receive(point &p)
{
    if (!off)
        __tsan_acquire(&p);
}
static inline EMULATED_UNSEEN void *this_fiber()
{
    return __tsan_get_current_fiber();
}
static inline EMULATED_UNSEEN void *new_fiber()
{
    return __tsan_create_fiber(0);
}
// To be followed by the switch itself.
static inline EMULATED_UNSEEN void enter_fiber(void *fiber)
{
    if (!off)
        __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
}

// Accesses during its lifetime are not checked.
struct unseen {
    unseen()
    {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    ~unseen()
    {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
};

// Every block has static shared memory of its own, while its address is that of the other blocks':
// forgets the accesses so far. The interface for the heap of a managed language is the only one
// that does this for memory at a given address.
static inline EMULATED_UNSEEN void new_static_shared()
{
    if (off)
        return;
    const unsigned long begin = ((unsigned long)__bss_start + 7) / 8 * 8;
    const unsigned long bytes = ((unsigned long)_end - begin) / 8 * 8;
    static bool known;
    if (!known)
        __tsan_java_init(begin, bytes);
    else
        __tsan_java_free(begin, bytes);
    __tsan_java_alloc(begin, bytes);
    known = true;
}
#else
enum { CHECKED = 0 };
static const bool off = true;
struct unchecked {
    explicit unchecked(bool)
    {
    }
};

static inline void publish(point &)
{
}
static inline void receive(point &)
{
}
static inline void *this_fiber()
{
    return nullptr;
}
static inline void *new_fiber()
{
    return nullptr;
}
static inline void enter_fiber(void *)
{
}
struct unseen {
    unseen()
    {
    }
};
static inline void new_static_shared()
{
}
#endif

// --- fences and atomic operations ----------------------------------------------------------------

// Of a thread: its last fence, and how many fences it has seen published at each address since
// then; -1: none.
struct fenced {
    int fence = -1;
    std::vector<std::pair<const void *, size_t>> seen;
};

// Of a grid: its fences, and which of them preceded the atomic operations on an address, in order.
static std::deque<point> fences;
static int fence_count;
static std::map<const void *, std::vector<int>> published;

static inline EMULATED_UNSEEN void fence(fenced &thread)
{
    if (off)
        return;
    const unseen own;
    for (const auto &s : thread.seen)
        for (size_t i = 0; i < s.second; i++)
            receive(fences[(size_t)published[s.first][i]]);
    thread.seen.clear();
    thread.fence = fence_count++;
    if ((int)fences.size() < fence_count)
        fences.emplace_back();
    publish(fences[(size_t)thread.fence]);
}

static inline EMULATED_UNSEEN void atomic(fenced &thread, const void *p)
{
    if (off)
        return;
    const unseen own;
    if (thread.fence >= 0)
        published[p].push_back(thread.fence);
    const auto found = published.find(p);
    if (found != published.end())
        thread.seen.emplace_back(p, found->second.size());
}

static inline void new_grid()
{
    const unseen own;
    published.clear();
    fence_count = 0;
}
} // namespace order

#endif
