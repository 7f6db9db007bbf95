// SPDX-License-Identifier: Apache-2.0
// Compares loading a checkpoint that is not in memory with reading its files, as `dd bs=8M` does.
// The bar is 80 % of that speed. Before every run the kernel is advised to drop the files from its
// cache. The share that stays is printed; a line where it is not small is meaningless.
//
// Usage: bench_load FOLDER [ROUNDS [cpu|cuda]]; CSV on stdout. The folder should be larger than the
// buffers of the disk, 2 GB or more. Both are done in turn, wall time; `cpu_s` is processor time
// of all threads.
#include "base/order.h"
#include "live/device/clock.h"
#include "live/model/checkpoint.h"
#include "live/model/weights.h"
#include "tests/bench/bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 8 << 20, MOST_ROUNDS = 99 };

static int open_file(const char *path, size_t *bytes)
{
    struct stat s;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &s)) {
        perror(path);
        exit(2);
    }
    *bytes = (size_t)s.st_size;
    return fd;
}

// Advises the kernel to drop the files from its cache, and returns the share that stays.
static double forget(const live_checkpoint *c)
{
    double pages = 0, resident = 0;
    for (size_t i = 0; i < live_checkpoint_shards(c); i++) {
        size_t bytes, page = (size_t)sysconf(_SC_PAGESIZE);
        int fd = open_file(live_checkpoint_path(c, i), &bytes);
        fsync(fd); // pages that are not written yet would stay
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        size_t n = (bytes + page - 1) / page;
        unsigned char *in = calloc(n, 1);
        void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (in && p != MAP_FAILED && !mincore(p, bytes, in))
            for (size_t k = 0; k < n; k++)
                resident += in[k] & 1;
        pages += (double)n;
        if (p != MAP_FAILED)
            munmap(p, bytes);
        free(in);
        close(fd);
    }
    return resident / pages;
}

// Seconds; *total: bytes.
static double read_files(const live_checkpoint *c, char *buffer, double *total)
{
    const double start = live_now_s();
    *total = 0;
    for (size_t i = 0; i < live_checkpoint_shards(c); i++) {
        size_t bytes;
        int fd = open_file(live_checkpoint_path(c, i), &bytes);
        for (ssize_t n; (n = read(fd, buffer, BLOCK)) > 0;)
            *total += (double)n;
        close(fd);
    }
    return live_now_s() - start;
}

static double load_files(const char *folder, live_backend *b)
{
    dsc_error e;
    live_weights *w;
    const double start = live_now_s();
    must(live_weights_load(&w, folder, b, NULL, &e), &e);
    const double s = live_now_s() - start;
    live_weights_free(w);
    return s;
}

int main(int argc, char **argv)
{
    dsc_error e;
    live_backend *b;
    live_checkpoint *c;
    double share[MOST_ROUNDS], bytes;
    if (argc < 2) {
        fprintf(stderr, "bench_load: no folder of a checkpoint was named\n");
        return 77;
    }
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    char *buffer = aligned_alloc(4096, BLOCK);
    if (!buffer)
        return 3;
    memset(buffer, 0, BLOCK);
    must(live_backend_open(&b, argc > 3 ? argv[3] : "cpu", 1, false, &e), &e);
    must(live_checkpoint_open(&c, argv[1], &e), &e);
    printf("# %s\nround,GB,resident_before_read,read_GB_s,read_cpu_s,resident_before_load,"
           "load_GB_s,load_cpu_s,load_share_of_read\n",
           BENCH_FLAGS);
    for (int r = 0; r < rounds; r++) {
        const double before_read = forget(c);
        double cpu = cpu_s();
        const double read_s = read_files(c, buffer, &bytes), read_cpu = cpu_s() - cpu;
        const double before_load = forget(c);
        cpu = cpu_s();
        const double load_s = load_files(argv[1], b), load_cpu = cpu_s() - cpu;
        share[r] = read_s / load_s;
        printf("%d,%.3f,%.4f,%.3f,%.2f,%.4f,%.3f,%.2f,%.3f\n", r + 1, bytes * 1e-9, before_read,
               bytes / read_s * 1e-9, read_cpu, before_load, bytes / load_s * 1e-9, load_cpu,
               share[r]);
        fflush(stdout);
    }
    qsort(share, (size_t)rounds, sizeof *share, dsc_by_real);
    printf("# median share %.3f\n", share[rounds / 2]);
    live_checkpoint_close(c);
    b->type->close(b);
    free(buffer);
    return 0;
}
