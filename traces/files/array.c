// SPDX-License-Identifier: Apache-2.0
// Opens array files: chooses the reader by the file's name, maps the file, and converts binary
// rows, whose elements need no alignment.
#include "traces/files/array.h"

#include "base/file.h"
#include "base/memory.h"
#include "traces/files/array_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// --- safetensors -------------------------------------------------------------------------------

static bool is_float(const dsc_tensor *t)
{
    return t->dtype == DSC_F16 || t->dtype == DSC_BF16 || t->dtype == DSC_F32 ||
           t->dtype == DSC_F64;
}

// The number of floating-point tensors; *last is the last one. Lists their names, "weight, bias,
// ...", as far as they fit.
static size_t list_floats(const dsc_safetensors *file, const dsc_tensor **last, char *out,
                          size_t size)
{
    size_t n = 0, floats = 0;
    snprintf(out, size, "none");
    for (size_t i = 0; i < dsc_safetensors_count(file); i++) {
        const dsc_tensor *t = dsc_safetensors_at(file, i);
        if (!is_float(t))
            continue;
        *last = t;
        if (floats++ && n == size)
            continue; // the list is full
        bool fits = n + strlen(t->name) + 8 <= size;
        snprintf(out + n, size - n, "%s%s", n ? ", " : "", fits ? t->name : "...");
        n = fits ? strlen(out) : size;
    }
    return floats;
}

static int choose_tensor(const dsc_array *a, const char *name, const dsc_tensor **out,
                         dsc_error *err)
{
    char names[400];
    const dsc_tensor *t = NULL;
    size_t floats = list_floats(a->file, &t, names, sizeof names);
    if (!name && floats != 1)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: %zu floating-point tensors; select one by FILE.safetensors:NAME (%s)",
                        a->path, floats, names);
    if (name)
        t = dsc_safetensors_find(a->file, name);
    if (!t)
        return dsc_fail(err, DSC_EINPUT, "%s: no tensor '%.100s' (floating-point tensors: %s)",
                        a->path, name, names);
    if (!is_float(t))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%.100s' is %s; it must be F16, BF16, F32 or F64 "
                        "(floating-point tensors: %s)",
                        a->path, t->name, dsc_dtype_name(t->dtype), names);
    *out = t;
    return DSC_OK;
}

static int read_safetensors(dsc_array *a, const char *name, dsc_error *err)
{
    const dsc_tensor *t = NULL;
    char what[600];
    int rc = dsc_safetensors_open(&a->file, a->path, err);
    if (!rc)
        rc = choose_tensor(a, name, &t, err);
    if (rc)
        return rc;
    snprintf(what, sizeof what, "%.400s: tensor '%.100s'", a->path, t->name);
    a->data = t->data;
    a->dtype = t->dtype;
    return dsc_array_shape(a, what, t->rank, t->shape, err);
}

// --- opening -----------------------------------------------------------------------------------

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static int open_spec(dsc_array *a, const char *spec, dsc_error *err)
{
    static const char mark[] = ".safetensors:";
    const char *colon = strstr(spec, mark);
    size_t length = colon ? (size_t)(colon - spec) + sizeof mark - 2 : strlen(spec);
    int rc = dsc_strndup(&a->path, spec, length, err);
    if (rc)
        return rc;
    bool npy = ends_in(spec, ".npy"), tensors = colon || ends_in(spec, ".safetensors");
    if (!npy && !tensors && !ends_in(spec, ".csv") && !ends_in(spec, ".tsv") &&
        !ends_in(spec, ".txt"))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: unrecognized format; rows of numbers are read from files named *.npy, "
                        "*.safetensors, *.csv, *.tsv or *.txt",
                        spec);
    if (stat(a->path, &a->opened))
        return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", a->path);
    if (tensors)
        return read_safetensors(a, colon ? spec + length + 1 : NULL, err);
    void *map = NULL;
    rc = dsc_map_file(&map, &a->bytes, a->path, 1, npy ? "a .npy file" : "a table", err);
    a->map = map;
    if (rc)
        return rc;
    return npy ? dsc_array_read_npy(a, err) : dsc_array_read_csv(a, err);
}

int dsc_array_open(dsc_array **out, const char *spec, dsc_error *err)
{
    dsc_array *a;
    *out = NULL;
    int rc = dsc_new(&a, 1, err);
    if (rc)
        return rc;
    rc = open_spec(a, spec, err);
    if (rc)
        dsc_array_close(a);
    else
        *out = a;
    return rc;
}

void dsc_array_close(dsc_array *a)
{
    if (!a)
        return;
    if (a->map)
        munmap(a->map, a->bytes);
    dsc_safetensors_close(a->file);
    free(a->start);
    free(a->path);
    free(a);
}

int64_t dsc_array_rows(const dsc_array *a)
{
    return a->rows;
}

int64_t dsc_array_columns(const dsc_array *a)
{
    return a->columns;
}

// --- binary rows -------------------------------------------------------------------------------

// Reads `size` bytes as an unsigned number, on a little-endian machine.
static inline uint64_t load(const unsigned char *bytes, int size, bool big_endian)
{
    uint64_t u = 0;
    memcpy(&u, bytes, (size_t)size);
    return big_endian ? __builtin_bswap64(u) >> (64 - 8 * size) : u;
}

// IEEE 754 binary16: sign, 5 bits of exponent (bias 15), 10 bits of fraction.
static double from_half(uint64_t u)
{
    int exponent = (int)(u >> 10 & 31), fraction = (int)(u & 1023);
    double x = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    return u >> 15 ? -x : x;
}

static double from_single(uint64_t u)
{
    uint32_t bits = (uint32_t)u;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static double from_double(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static void read_binary(const dsc_array *a, int64_t i, double *out)
{
    int64_t n = a->columns;
    const unsigned char *row = a->data + (size_t)(i * n) * dsc_dtype_bytes(a->dtype);
    switch (a->dtype) {
    case DSC_F16:
        for (int64_t j = 0; j < n; j++)
            out[j] = from_half(load(row + 2 * j, 2, a->big_endian));
        break;
    case DSC_BF16:
        for (int64_t j = 0; j < n; j++)
            out[j] = from_single(load(row + 2 * j, 2, a->big_endian) << 16);
        break;
    case DSC_F32:
        for (int64_t j = 0; j < n; j++)
            out[j] = from_single(load(row + 4 * j, 4, a->big_endian));
        break;
    default:
        for (int64_t j = 0; j < n; j++)
            out[j] = from_double(load(row + 8 * j, 8, a->big_endian));
    }
}

int dsc_array_row(const dsc_array *a, int64_t i, double *out, dsc_error *err)
{
    if (i < 0 || i >= a->rows)
        return dsc_fail(err, DSC_EUSAGE, "%s: row %" PRId64 " does not exist; there are %" PRId64,
                        a->path, i, a->rows);
    int rc = DSC_OK;
    if (a->data)
        read_binary(a, i, out);
    else
        rc = dsc_array_csv_row(a, i, out, err);
    return rc ? rc : dsc_check_unchanged(a->path, &a->opened, err);
}
