// SPDX-License-Identifier: Apache-2.0
// Writes safetensors files. Every tensor starts on a 64-byte boundary of the file: the header is
// padded with spaces, and padding tensors fill the gaps (safetensors.h).
#include "base/outfile.h"
#include "base/memory.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "traces/files/safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIECES_MAX = 1024 }; // pieces of one writev call: IOV_MAX of Linux

// Bytes from `at` to the next boundary.
static size_t padding(uint64_t at)
{
    return (size_t)(-at % DSC_SAFETENSORS_ALIGN);
}

// The size of a tensor's data. DSC_EUSAGE when its description is invalid.
static int extent_of(const dsc_tensor *t, uint64_t *bytes, dsc_error *err)
{
    *bytes = dsc_dtype_bytes(t->dtype);
    bool sound = t->name && *bytes && t->rank >= 0 && t->rank <= DSC_MAX_RANK;
    for (int i = 0; sound && i < t->rank; i++)
        sound = t->shape[i] >= 0 && !__builtin_mul_overflow(*bytes, (uint64_t)t->shape[i], bytes);
    // "__" is reserved by the format (__metadata__) and for padding.
    if (!sound || *bytes > INT64_MAX / 4 || (*bytes && !t->data) || !strncmp(t->name, "__", 2))
        return dsc_fail(err, DSC_EUSAGE,
                        "tensor '%.100s' cannot be written: its name, type or shape is invalid",
                        t->name ? t->name : "(null)");
    return DSC_OK;
}

// [shape[0], ...], or NULL when out of memory.
static json_t *shape_list(const int64_t *shape, int rank)
{
    json_t *list = json_array();
    int bad = 0;
    for (int k = 0; k < rank; k++)
        bad |= json_array_append_new(list, json_integer((json_int_t)shape[k]));
    if (!bad)
        return list;
    json_decref(list);
    return NULL;
}

// Adds {"dtype", "shape", "data_offsets"} under `name`. Refuses a duplicate name and one that is
// not UTF-8.
static int add_entry(json_t *header, const char *name, dsc_dtype dtype, const int64_t *shape,
                     int rank, uint64_t begin, uint64_t end, dsc_error *err)
{
    json_t *entry =
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dsc_dtype_name(dtype), "shape",
                  shape_list(shape, rank), "data_offsets", (json_int_t)begin, (json_int_t)end);
    bool twice = json_object_get(header, name);
    if (!entry || twice) {
        json_decref(entry);
        return twice ? dsc_fail(err, DSC_EUSAGE, "two tensors are named '%.100s'", name)
                     : dsc_fail(err, DSC_ENOMEM, "out of memory");
    }
    if (!json_object_set_new(header, name, entry))
        return DSC_OK;
    return dsc_bad_utf8(name, (int64_t)strlen(name)) < 0
               ? dsc_fail(err, DSC_ENOMEM, "out of memory")
               : dsc_fail(err, DSC_EUSAGE, "a tensor's name is not valid UTF-8");
}

static int describe(json_t *header, const dsc_tensor *tensors, size_t count, dsc_error *err)
{
    uint64_t at = 0, bytes;
    size_t pads = 0;
    for (size_t i = 0; i < count; i++) {
        const dsc_tensor *t = &tensors[i];
        int rc = extent_of(t, &bytes, err);
        size_t pad = rc || !bytes ? 0 : padding(at);
        if (pad) {
            char name[40];
            snprintf(name, sizeof name, DSC_SAFETENSORS_PAD "%zu", pads++);
            rc = add_entry(header, name, DSC_U8, &(int64_t){(int64_t)pad}, 1, at, at + pad, err);
            at += pad;
        }
        if (!rc && bytes > INT64_MAX / 2 - at)
            rc = dsc_fail(err, DSC_EUSAGE, "the tensors are too large for one file");
        if (rc)
            return rc;
        rc = add_entry(header, t->name, t->dtype, t->shape, t->rank, at, at + bytes, err);
        if (rc)
            return rc;
        at += bytes;
    }
    return DSC_OK;
}

// *out: length word, JSON and spaces up to a boundary.
static int make_header(dsc_buffer *out, const dsc_tensor *tensors, size_t count, dsc_error *err)
{
    json_t *header = json_object();
    char *text = NULL;
    int rc = describe(header, tensors, count, err);
    if (!rc) {
        text = dsc_json_dump(header, JSON_COMPACT);
        if (!text)
            rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    }
    json_decref(header);
    unsigned char word[8] = {0};
    if (!rc)
        rc = dsc_buffer_append(out, word, sizeof word, err);
    if (!rc)
        rc = dsc_buffer_puts(out, text, err);
    free(text);
    while (!rc && padding(out->length))
        rc = dsc_buffer_append(out, " ", 1, err);
    if (!rc && out->length - 8 > DSC_SAFETENSORS_HEADER_MAX)
        rc = dsc_fail(err, DSC_EUSAGE, "too many tensors: header of %zu bytes; the limit is %d",
                      out->length - 8, DSC_SAFETENSORS_HEADER_MAX);
    for (int i = 0; !rc && i < 8; i++)
        out->data[i] = (char)((out->length - 8) >> 8 * i & 0xff);
    return rc;
}

// Writes everything in as few calls as possible: the kernel then stores the file in large pages,
// which are faster to map and read.
static int write_pieces(dsc_outfile *f, struct iovec *piece, size_t count, dsc_error *err)
{
    while (count) {
        int some = count < PIECES_MAX ? (int)count : PIECES_MAX;
        ssize_t done = writev(fileno(f->stream), piece, some);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", f->path);
        for (; count && (size_t)done >= piece->iov_len; piece++, count--)
            done -= (ssize_t)piece->iov_len;
        if (count) {
            piece->iov_base = (char *)piece->iov_base + done;
            piece->iov_len -= (size_t)done;
        }
    }
    return DSC_OK;
}

// Cuts the file into pieces: the header, and each tensor with the padding before it. *out is owned
// by the caller.
static int cut_pieces(struct iovec **out, const dsc_buffer *header, const dsc_tensor *tensors,
                      size_t count, dsc_error *err)
{
    static const char zeros[DSC_SAFETENSORS_ALIGN];
    uint64_t at = 0, bytes;
    int rc = dsc_new(out, 1 + 2 * count, err);
    if (!rc)
        (*out)[0] = (struct iovec){header->data, header->length};
    for (size_t i = 0; !rc && i < count; i++) {
        rc = extent_of(&tensors[i], &bytes, err);
        size_t pad = rc || !bytes ? 0 : padding(at);
        (*out)[1 + 2 * i] = (struct iovec){(char *)zeros, pad};
        (*out)[2 + 2 * i] = (struct iovec){(void *)tensors[i].data, bytes};
        at += pad + bytes;
    }
    return rc;
}

int dsc_safetensors_write(const char *path, const dsc_tensor *tensors, size_t count, dsc_error *err)
{
    dsc_buffer header = {0};
    dsc_outfile f = {0};
    struct iovec *piece = NULL;
    int rc = make_header(&header, tensors, count, err);
    if (!rc)
        rc = cut_pieces(&piece, &header, tensors, count, err);
    if (!rc)
        rc = dsc_outfile_open(&f, path, false, err);
    if (!rc)
        rc = write_pieces(&f, piece, 1 + 2 * count, err);
    if (rc)
        dsc_outfile_abort(&f);
    else
        rc = dsc_outfile_commit(&f, err);
    dsc_buffer_fini(&header);
    free(piece);
    return rc;
}
