// SPDX-License-Identifier: Apache-2.0
// Parts of the checks: results, twins of memory on both devices, and lists of a pass.
#include "tests/ops/check_ops.h"

#include "base/memory.h"
#include "live/device/cpu_kernel.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_call(check *c, int status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "check_ops: %s: %s\n", what, c->error.message);
    exit(status == DSC_ENOMEM || status == DSC_EABSENT ? 3 : 1);
}

void check_line(check *c, bool good, double error, double tolerance, const char *format, ...)
{
    va_list args;
    *(good ? &c->passed : &c->failed) += 1;
    printf("%s - ", good ? "ok" : "not ok");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(": error %.3g, at most %.3g\n", error, tolerance);
    fflush(stdout);
}

bool check_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (size_t word; *list; list += word + 1) {
        word = strcspn(list, ",");
        if (word == length && !strncmp(list, name, length))
            return true;
        if (!list[word])
            return false;
    }
    return true;
}

int check_words(const char *list)
{
    int words = *list != '\0';
    for (; *list; list++)
        words += *list == ',';
    return words;
}

static void *room(check *c, int64_t count, size_t size)
{
    void *p;
    check_call(c, dsc_alloc(&p, (size_t)count, size, &c->error), "memory");
    return p;
}

// --- numbers of 16 bits --------------------------------------------------------------------------

double check_half_unit(dsc_dtype dtype)
{
    return dtype == DSC_BF16 ? 0x1p-8 : dtype == DSC_F16 ? 0x1p-11 : 0;
}

static float widen(const void *p, dsc_dtype dtype, int64_t i)
{
    return dtype == DSC_F32    ? ((const float *)p)[i]
           : dtype == DSC_BF16 ? live_from_bf16(((const uint16_t *)p)[i])
                               : live_from_f16(((const uint16_t *)p)[i]);
}

static uint16_t narrow(float x, dsc_dtype dtype)
{
    return dtype == DSC_BF16 ? live_to_bf16(x) : live_to_f16(x);
}

float check_rounded(float x, dsc_dtype dtype)
{
    const uint16_t half = dtype == DSC_F32 ? 0 : narrow(x, dtype);
    return dtype == DSC_F32 ? x : widen(&half, dtype, 0);
}

// --- twins ---------------------------------------------------------------------------------------

static void put(check *c, live_backend *b, void *to, dsc_dtype dtype, int64_t first,
                const float *from, int64_t count)
{
    const size_t size = dsc_dtype_bytes(dtype);
    char *at = (char *)to + (size_t)first * size;
    if (dtype == DSC_F32) {
        check_call(c, b->type->memory.upload(b, at, from, (size_t)count * size, &c->error),
                   "upload");
        return;
    }
    uint16_t *half = room(c, count, size);
    for (int64_t i = 0; i < count; i++)
        half[i] = narrow(from[i], dtype);
    check_call(c, b->type->memory.upload(b, at, half, (size_t)count * size, &c->error), "upload");
    free(half);
}

void check_twin_set(check *c, twin *t, int64_t first, const float *from, int64_t count)
{
    put(c, c->cpu, t->cpu, t->cpu_dtype, first, from, count);
    put(c, c->device, t->device, t->device_dtype, first, from, count);
}

twin check_twin(check *c, int64_t count, dsc_dtype cpu_dtype, dsc_dtype device_dtype)
{
    twin t = {.count = count, .cpu_dtype = cpu_dtype, .device_dtype = device_dtype};
    check_call(c,
               c->cpu->type->memory.alloc(c->cpu, &t.cpu,
                                          (size_t)count * dsc_dtype_bytes(cpu_dtype), &c->error),
               "alloc");
    check_call(c,
               c->device->type->memory.alloc(
                   c->device, &t.device, (size_t)count * dsc_dtype_bytes(device_dtype), &c->error),
               "alloc");
    float *poison = room(c, count, sizeof *poison);
    for (int64_t i = 0; i < count; i++)
        poison[i] = NAN;
    check_twin_set(c, &t, 0, poison, count);
    free(poison);
    return t;
}

void check_twin_free(check *c, twin *t)
{
    c->cpu->type->memory.free(c->cpu, t->cpu);
    c->device->type->memory.free(c->device, t->device);
    *t = (twin){0};
}

uint32_t check_draw(check *c, uint32_t below)
{
    // A step of a linear congruential generator (Knuth's MMIX); the upper bits are the better ones.
    c->draws = c->draws * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((c->draws >> 32) * below >> 32);
}

void check_twin_fill(check *c, twin *t, int64_t first, int64_t count, dsc_dtype exact, double limit)
{
    void *raw = room(c, count, dsc_dtype_bytes(exact));
    float *x = room(c, count, sizeof *x);
    check_call(c,
               c->cpu->type->memory.fill(c->cpu, raw, exact, count, check_draw(c, UINT32_MAX), 0,
                                         limit, &c->error),
               "fill");
    for (int64_t i = 0; i < count; i++)
        x[i] = widen(raw, exact, i);
    check_twin_set(c, t, first, x, count);
    free(raw);
    free(x);
}

void check_twin_numbers(check *c, const twin *t, bool device, float *out)
{
    live_backend *b = device ? c->device : c->cpu;
    const dsc_dtype dtype = device ? t->device_dtype : t->cpu_dtype;
    const size_t bytes = (size_t)t->count * dsc_dtype_bytes(dtype);
    void *raw = room(c, t->count, dsc_dtype_bytes(dtype));
    check_call(c, b->type->memory.download(b, raw, device ? t->device : t->cpu, bytes, &c->error),
               "download");
    for (int64_t i = 0; i < t->count; i++)
        out[i] = widen(raw, dtype, i);
    free(raw);
}

double check_twin_error(check *c, const twin *t)
{
    float *a = room(c, t->count, sizeof *a), *b = room(c, t->count, sizeof *b);
    double most = 0, scale = 0;
    check_twin_numbers(c, t, false, a);
    check_twin_numbers(c, t, true, b);
    for (int64_t i = 0; i < t->count; i++) {
        if (isnan(a[i]) != isnan(b[i]))
            most = INFINITY;
        if (isnan(a[i]) || isnan(b[i]) || a[i] == b[i])
            continue;
        const double d = fabs((double)a[i] - b[i]);
        most = d > most ? d : most;
    }
    for (int64_t i = 0; i < t->count; i++)
        scale = fabs((double)a[i]) > scale ? fabs((double)a[i]) : scale;
    free(a);
    free(b);
    return most > 0 ? most / scale : 0;
}

// --- passes --------------------------------------------------------------------------------------

check_pass check_pass_new(check *c, int64_t tokens, int64_t sequences, int64_t prefix,
                          int64_t window, bool branches, int64_t vocab)
{
    check_pass p = {.token = room(c, tokens * sequences, sizeof *p.token),
                    .position = room(c, tokens, sizeof *p.position),
                    .slot = room(c, tokens, sizeof *p.slot),
                    .output = room(c, tokens * sequences, sizeof *p.output),
                    .feature = room(c, tokens, sizeof *p.feature),
                    .parent = room(c, tokens, sizeof *p.parent)};
    // Some slots after the prefix are left out, as if they belonged to other drafts.
    const int64_t gap = branches ? 2 : 1, words = (tokens * gap + 63) / 64;
    p.mask = room(c, tokens * words, sizeof *p.mask);
    p.whole = room(c, tokens * words, sizeof *p.whole);
    for (int64_t i = 0; i < tokens * sequences; i++)
        p.token[i] = (int32_t)check_draw(c, (uint32_t)vocab);
    for (int64_t i = 0; i < tokens; i++) {
        p.parent[i] = (int32_t)i - 1;
        if (branches && i > 0)
            p.parent[i] = (int32_t)check_draw(c, (uint32_t)i + 1) - 1;
        p.position[i] = p.parent[i] < 0 ? (int32_t)prefix : p.position[p.parent[i]] + 1;
        p.slot[i] = (int32_t)(prefix + i * gap + (branches ? check_draw(c, 2) : 0));
        p.feature[i] = (int32_t)check_draw(c, (uint32_t)tokens);
        for (int64_t n = i; n >= 0; n = p.parent[n]) {
            const int64_t at = i * words + (p.slot[n] - prefix) / 64;
            const uint64_t bit = (uint64_t)1 << ((p.slot[n] - prefix) % 64);
            p.whole[at] |= bit;
            if (window == 0 || p.position[n] > p.position[i] - window)
                p.mask[at] |= bit;
        }
    }
    int64_t outputs = 0;
    for (int64_t i = 0; i < tokens * sequences; i++)
        if (i == 0 || check_draw(c, 3))
            p.output[outputs++] = (int32_t)i;
    p.batch = (live_batch){.tokens = tokens,
                           .sequences = sequences,
                           .token = p.token,
                           .position = p.position,
                           .slot = p.slot,
                           .prefix = prefix,
                           .mask = branches ? p.whole : p.mask,
                           .window_mask = branches && window ? p.mask : NULL,
                           .words = words,
                           .used = p.slot[tokens - 1] + 1,
                           .output = p.output,
                           .outputs = outputs,
                           .feature = p.feature};
    return p;
}

void check_pass_free(check_pass *p)
{
    free(p->token);
    free(p->position);
    free(p->slot);
    free(p->output);
    free(p->feature);
    free(p->parent);
    free(p->mask);
    free(p->whole);
}

// Begins a pass with a key of its own, so that nothing is replayed.
void check_begin(check *c, const live_batch *batch)
{
    static int next;
    const live_pass_key key = {c, next++};
    bool replayed;
    check_call(c, c->cpu->type->pass.begin(c->cpu, key, batch, &replayed, &c->error), "begin");
    check_call(c, c->device->type->pass.begin(c->device, key, batch, &replayed, &c->error),
               "begin");
}

void check_end(check *c)
{
    check_call(c, c->cpu->type->pass.end(c->cpu, &c->error), "end");
    check_call(c, c->device->type->pass.end(c->device, &c->error), "end");
    check_call(c, c->device->type->pass.wait(c->device, &c->error), "wait");
}
