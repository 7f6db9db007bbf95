// SPDX-License-Identifier: Apache-2.0
// Reads NumPy's .npy files (numpy/lib/format, "NPY format"): the bytes \x93NUMPY, a version (two
// bytes), the length of the header (two bytes in version 1, four in 2 and 3, little-endian), the
// header, the data. The header is a Python dictionary with the keys descr, fortran_order and shape.
// The parser accepts the Python syntax that NumPy writes, with blanks in any place.
#include "base/memory.h"
#include "traces/files/array_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    HEADER_MAX = 64 * 1024, // bytes; NumPy writes 128 and reads 10 000 by default
    RANK_MAX = 64,          // NumPy's limit
};

// The parser of the header. The first failure stays; after it every reader does nothing.
typedef struct header {
    const dsc_array *array;
    const char *at, *end;
    dsc_error *err;
    int rc;
    bool has_descr, has_order, has_shape;
    bool fortran;
    int rank;
    int64_t shape[RANK_MAX];
    dsc_dtype dtype;
    bool big_endian;
} header;

static void refuse(header *h, const char *format, ...) DSC_PRINTF(2, 3);

static void refuse(header *h, const char *format, ...)
{
    if (h->rc)
        return;
    char detail[300];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    h->rc = dsc_fail(h->err, DSC_EINPUT, "%s: header, byte %zu: %s", h->array->path,
                     (size_t)((const unsigned char *)h->at - h->array->map), detail);
}

static void skip_blanks(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t'))
        h->at++;
}

// Consumes `c` if it comes next.
static bool take(header *h, char c)
{
    skip_blanks(h);
    if (h->rc || h->at == h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

static void expect(header *h, char c)
{
    if (!take(h, c))
        refuse(h, "'%c' is missing", c);
}

static bool take_word(header *h, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(h);
    if (h->rc || (size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0)
        return false;
    h->at += n;
    return true;
}

// A string of at most size - 1 bytes in single or double quotes, without escapes.
static void read_string(header *h, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    char quote = take(h, '\'') ? '\'' : '"';
    if (quote == '"' && !take(h, '"')) {
        refuse(h, "a string is missing");
        return;
    }
    while (!h->rc && h->at < h->end && *h->at != quote) {
        if (*h->at == '\\' || *h->at == '\n' || n + 1 == size)
            refuse(h, "a string that NumPy does not write");
        else
            out[n++] = *h->at++;
    }
    out[n] = '\0';
    if (!h->rc && h->at == h->end)
        refuse(h, "a string has no end");
    h->at += !h->rc;
}

static void read_descr(header *h)
{
    static const struct {
        char name[3];
        dsc_dtype dtype;
    } types[] = {{"f2", DSC_F16}, {"f4", DSC_F32}, {"f8", DSC_F64}};
    char descr[64];
    skip_blanks(h);
    if (h->at < h->end && *h->at == '[') {
        refuse(h, "records of several fields; the dtype must be <f2, <f4, <f8, >f2, >f4 or >f8");
        return;
    }
    read_string(h, descr, sizeof descr);
    for (size_t i = 0; !h->rc && i < sizeof types / sizeof types[0]; i++)
        if ((descr[0] == '<' || descr[0] == '>') && strcmp(descr + 1, types[i].name) == 0) {
            h->dtype = types[i].dtype;
            h->big_endian = descr[0] == '>';
            return;
        }
    refuse(h, "%sdtype '%s'; it must be <f2, <f4, <f8, >f2, >f4 or >f8",
           strchr(descr, 'O') ? "pickled Python objects are not supported: " : "", descr);
}

static void read_size(header *h)
{
    int64_t n = 0;
    const char *begin = h->at;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *h->at - '0', &n)) {
            refuse(h, "a dimension overflows");
            return;
        }
    if (h->at == begin || (*begin == '0' && h->at > begin + 1))
        refuse(h, "the shape is not a tuple of non-negative integers");
    else if (h->rank == RANK_MAX)
        refuse(h, "more than %d dimensions", RANK_MAX);
    else
        h->shape[h->rank++] = n;
}

// Reads (), (5,), (3, 4). A tuple of one must end in a comma; the others may.
static void read_shape(header *h)
{
    bool comma = true;
    expect(h, '(');
    while (!h->rc && !take(h, ')')) {
        if (!comma)
            refuse(h, "',' is missing in the shape");
        skip_blanks(h);
        read_size(h);
        comma = take(h, ',');
        if (!h->rc && !comma && h->rank == 1)
            refuse(h, "the shape is not a tuple");
    }
}

static void read_item(header *h)
{
    char key[24];
    read_string(h, key, sizeof key);
    expect(h, ':');
    bool *has = !strcmp(key, "descr")           ? &h->has_descr
                : !strcmp(key, "fortran_order") ? &h->has_order
                : !strcmp(key, "shape")         ? &h->has_shape
                                                : NULL;
    if (!has || *has) {
        refuse(h, has ? "'%s' occurs twice" : "unknown key '%s'", key);
        return;
    }
    *has = true;
    if (has == &h->has_descr)
        read_descr(h);
    else if (has == &h->has_shape)
        read_shape(h);
    else if (take_word(h, "True"))
        h->fortran = true;
    else if (!take_word(h, "False"))
        refuse(h, "fortran_order is neither True nor False");
}

static int read_header(header *h)
{
    bool comma = true;
    expect(h, '{');
    while (!h->rc && !take(h, '}')) {
        if (!comma)
            refuse(h, "'%c' is missing", h->at == h->end ? '}' : ',');
        read_item(h);
        comma = take(h, ',');
    }
    skip_blanks(h);
    if (h->at != h->end)
        refuse(h, "unexpected text after the '}'");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        refuse(h, "%s is missing",
               !h->has_descr   ? "descr"
               : !h->has_order ? "fortran_order"
                               : "shape");
    if (h->fortran)
        refuse(h, "the array is in Fortran order; save numpy.ascontiguousarray(array) instead");
    return h->rc;
}

// Finds the first byte of the header and the byte after it.
static int find_header(const dsc_array *a, size_t *begin, size_t *end, dsc_error *err)
{
    const unsigned char *m = a->map;
    if (a->bytes < 10 || memcmp(m, "\x93NUMPY", 6) != 0)
        return dsc_fail(err, DSC_EINPUT, "%s: not a .npy file (byte 0)", a->path);
    if (m[6] < 1 || m[6] > 3 || m[7] != 0)
        return dsc_fail(
            err, DSC_EINPUT,
            "%s: version %d.%d of the .npy format (byte 6); versions 1.0 to 3.0 are supported",
            a->path, m[6], m[7]);
    *begin = m[6] == 1 ? 10 : 12;
    size_t length = (size_t)m[8] | (size_t)m[9] << 8;
    if (m[6] > 1 && a->bytes >= 12)
        length |= (size_t)m[10] << 16 | (size_t)m[11] << 24;
    if (length > HEADER_MAX)
        return dsc_fail(err, DSC_EINPUT, "%s: header of %zu bytes (byte 8); the limit is %d",
                        a->path, length, HEADER_MAX);
    if (a->bytes < *begin || length > a->bytes - *begin)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: truncated: header of %zu bytes in a file of %zu bytes", a->path,
                        length, a->bytes);
    *end = *begin + length;
    return DSC_OK;
}

int dsc_array_read_npy(dsc_array *a, dsc_error *err)
{
    size_t begin = 0, end = 0;
    int rc = find_header(a, &begin, &end, err);
    if (rc)
        return rc;
    header h = {.array = a,
                .at = (const char *)a->map + begin,
                .end = (const char *)a->map + end,
                .err = err};
    rc = read_header(&h);
    if (!rc)
        rc = dsc_array_shape(a, a->path, h.rank, h.shape, err);
    if (rc)
        return rc;
    a->dtype = h.dtype;
    a->big_endian = h.big_endian;
    a->data = a->map + end;
    size_t want = (size_t)(a->rows * a->columns) * dsc_dtype_bytes(a->dtype);
    if (a->bytes - end != want)
        return dsc_fail(
            err, DSC_EINPUT, "%s: %s: %zu bytes of data from byte %zu on; the shape requires %zu",
            a->path, a->bytes - end < want ? "truncated" : "too long", a->bytes - end, end, want);
    return DSC_OK;
}
