// SPDX-License-Identifier: Apache-2.0
// Reads lines through one of three decoders: plain, gzip (RFC 1952, by zlib), zstd (RFC 8878). The
// decoder is a function pointer chosen by the first bytes of the file.
#include "traces/files/input.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { RAW_BYTES = 1 << 17, TEXT_BYTES = 1 << 18 };

struct dsc_input {
    char *name;
    int fd;
    int64_t line; // number of the last line
    uint8_t *raw; // [RAW_BYTES] as stored; raw[raw_next, raw_stop) is not decoded yet
    size_t raw_next, raw_stop;
    int64_t raw_total; // bytes read into raw so far
    bool raw_end;      // read(2) has returned 0
    dsc_sha256 sha256; // of those raw_total bytes
    // Points next/stop at decoded bytes; next == stop: the end of the file.
    int (*decode)(dsc_input *in, dsc_error *err);
    const char *next, *stop; // decoded bytes that belong to no line yet
    char *text;              // [TEXT_BYTES] output of the decoders
    int64_t text_total;      // bytes decoded so far
    bool inside;             // inside a gzip member or zstd frame
    int64_t parts;           // complete members or frames
    z_stream gzip;
    ZSTD_DCtx *zstd;
    dsc_buffer long_line; // a line that spans several decoded blocks
    dsc_error broken;     // the final error
};

// Reads bytes after those in the raw buffer.
static int read_more(dsc_input *in, dsc_error *err)
{
    uint8_t *end = in->raw + in->raw_stop;
    ssize_t n = read(in->fd, end, RAW_BYTES - in->raw_stop);
    if (n < 0)
        return dsc_fail_errno(err, DSC_EINPUT, errno, "%s", in->name);
    in->raw_end = n == 0;
    in->raw_stop += (size_t)n;
    in->raw_total += n;
    dsc_sha256_update(&in->sha256, end, (size_t)n);
    return DSC_OK;
}

// Fills the raw buffer when it is empty; leaves it empty at the end of the file.
static int refill(dsc_input *in, dsc_error *err)
{
    if (in->raw_next < in->raw_stop || in->raw_end)
        return DSC_OK;
    in->raw_next = in->raw_stop = 0;
    return read_more(in, err);
}

static int truncated(const dsc_input *in, const char *what, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT, "%s: truncated: the %s is incomplete at byte %lld", in->name,
                    what, (long long)in->raw_total);
}

static int corrupt(const dsc_input *in, const char *what, const char *why, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT, "%s: corrupt %s near byte %lld: %s", in->name, what,
                    (long long)dsc_input_position(in), why);
}

static int garbage(const dsc_input *in, const char *what, int64_t at, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT,
                    "%s: the data at byte %lld are not %s; a compressed file may contain "
                    "nothing else",
                    in->name, (long long)at, what);
}

// Makes `n` bytes of in->text the next decoded bytes. Refuses an archive that expands too far.
static int publish(dsc_input *in, size_t n, dsc_error *err)
{
    in->next = in->text;
    in->stop = in->text + n;
    in->text_total += (int64_t)n;
    if (in->text_total > DSC_INPUT_RATIO_FREE &&
        in->text_total / DSC_INPUT_RATIO > dsc_input_position(in))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: %lld bytes expand to %lld; more than %d times is refused as a "
                        "decompression bomb",
                        in->name, (long long)dsc_input_position(in), (long long)in->text_total,
                        DSC_INPUT_RATIO);
    return DSC_OK;
}

static int decode_plain(dsc_input *in, dsc_error *err)
{
    int rc = refill(in, err);
    if (rc)
        return rc;
    in->next = (const char *)in->raw + in->raw_next;
    in->stop = (const char *)in->raw + in->raw_stop;
    in->raw_next = in->raw_stop;
    return DSC_OK;
}

static int decode_gzip(dsc_input *in, dsc_error *err)
{
    z_stream *z = &in->gzip;
    z->next_out = (Bytef *)in->text;
    z->avail_out = TEXT_BYTES;
    while (z->avail_out == TEXT_BYTES) {
        int rc = refill(in, err);
        if (rc)
            return rc;
        // inflate is called once more at the end of the file, because it may hold back output.
        bool end = in->raw_next == in->raw_stop;
        if (end && !in->inside)
            break;
        z->next_in = in->raw + in->raw_next;
        z->avail_in = (uInt)(in->raw_stop - in->raw_next);
        int64_t before = dsc_input_position(in);
        in->inside = true;
        int r = inflate(z, Z_NO_FLUSH);
        in->raw_next = in->raw_stop - z->avail_in;
        if (r == Z_STREAM_END) {
            in->inside = false;
            in->parts++;
            inflateReset(z);
        } else if (r == Z_MEM_ERROR) {
            return dsc_fail(err, DSC_ENOMEM, "out of memory");
        } else if (end && r == Z_BUF_ERROR) {
            return truncated(in, "gzip data", err);
        } else if (r != Z_OK && r != Z_BUF_ERROR) {
            // inflate checks the two magic bytes first.
            if (in->parts && z->total_in <= 2)
                return garbage(in, "gzip data", before, err);
            return corrupt(in, "gzip data", z->msg ? z->msg : "unknown content", err);
        }
    }
    return publish(in, TEXT_BYTES - z->avail_out, err);
}

static int zstd_error(const dsc_input *in, size_t code, int64_t before, dsc_error *err)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation: return dsc_fail(err, DSC_ENOMEM, "out of memory");
    case ZSTD_error_frameParameter_windowTooLarge:
        return dsc_fail(err, DSC_EINPUT,
                        "%s: the zstd frame at byte %lld needs a window above the limit of %d MiB; "
                        "compress it again without --long",
                        in->name, (long long)before, 1 << (DSC_INPUT_WINDOW_LOG - 20));
    case ZSTD_error_prefix_unknown: return garbage(in, "zstd data", before, err);
    default: return corrupt(in, "zstd data", ZSTD_getErrorName(code), err);
    }
}

static int decode_zstd(dsc_input *in, dsc_error *err)
{
    ZSTD_outBuffer out = {in->text, TEXT_BYTES, 0};
    while (out.pos == 0) {
        int rc = refill(in, err);
        if (rc)
            return rc;
        bool end = in->raw_next == in->raw_stop;
        if (end && !in->inside)
            break;
        ZSTD_inBuffer source = {in->raw + in->raw_next, in->raw_stop - in->raw_next, 0};
        int64_t before = dsc_input_position(in);
        size_t r = ZSTD_decompressStream(in->zstd, &out, &source);
        in->raw_next += source.pos;
        if (ZSTD_isError(r))
            return zstd_error(in, r, before, err);
        in->inside = r != 0;
        if (r == 0)
            in->parts++;
        else if (end && out.pos == 0)
            return truncated(in, "zstd data", err);
    }
    return publish(in, out.pos, err);
}

static int choose_decoder(dsc_input *in, dsc_error *err)
{
    // A pipe may return one byte at a time; the magic number needs four, or the end of the file.
    int rc = DSC_OK;
    while (!rc && in->raw_stop < 4 && !in->raw_end)
        rc = read_more(in, err);
    if (rc)
        return rc;
    const uint8_t *m = in->raw;
    bool four = in->raw_stop >= 4;
    if (in->raw_stop >= 2 && m[0] == 0x1f && m[1] == 0x8b) {
        in->decode = decode_gzip;
        if (inflateInit2(&in->gzip, 15 + 16) != Z_OK) // 32 KiB window, gzip wrapper only
            return dsc_fail(err, DSC_ENOMEM, "out of memory");
    } else if (four && (memcmp(m, "\x28\xb5\x2f\xfd", 4) == 0 ||
                        ((m[0] & 0xf0) == 0x50 && memcmp(m + 1, "\x2a\x4d\x18", 3) == 0))) {
        in->decode = decode_zstd;
        in->zstd = ZSTD_createDCtx();
        if (!in->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(in->zstd, ZSTD_d_windowLogMax,
                                                             DSC_INPUT_WINDOW_LOG)))
            return dsc_fail(err, DSC_ENOMEM, "out of memory");
    } else {
        in->decode = decode_plain;
    }
    return DSC_OK;
}

// The name for messages. A very long path is cut to its end, so that the message still fits.
static int set_name(dsc_input *in, const char *path, dsc_error *err)
{
    enum { NAME_MAX_BYTES = 300 }; // the base name, at most 255 bytes, is always complete
    size_t n = strlen(path);
    if (strcmp(path, "-") == 0)
        return dsc_strndup(&in->name, "stdin", 5, err);
    if (n <= NAME_MAX_BYTES)
        return dsc_strndup(&in->name, path, n, err);
    dsc_buffer b = {0};
    int rc = dsc_buffer_printf(&b, err, "...%s", path + n - NAME_MAX_BYTES);
    in->name = b.data;
    return rc;
}

int dsc_input_open(dsc_input **out, const char *path, dsc_error *err)
{
    dsc_input *in;
    *out = NULL;
    int rc = dsc_new(&in, 1, err);
    if (rc)
        return rc;
    in->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    dsc_sha256_init(&in->sha256);
    int why = errno;
    rc = set_name(in, path, err);
    if (!rc && in->fd < 0)
        rc = dsc_fail_errno(err, DSC_EINPUT, why, "%s", in->name);
    if (!rc)
        rc = dsc_new(&in->raw, RAW_BYTES, err);
    if (!rc)
        rc = dsc_new(&in->text, TEXT_BYTES, err);
    if (!rc)
        rc = choose_decoder(in, err);
    if (rc) {
        dsc_input_close(in);
        return rc;
    }
    *out = in;
    return DSC_OK;
}

void dsc_input_close(dsc_input *in)
{
    if (!in)
        return;
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    if (in->decode == decode_gzip)
        inflateEnd(&in->gzip);
    ZSTD_freeDCtx(in->zstd);
    dsc_buffer_fini(&in->long_line);
    free(in->text);
    free(in->raw);
    free(in->name);
    free(in);
}

// The next line without its \n; out->bytes is NULL at the end of the file.
static int take_line(dsc_input *in, dsc_line *out, dsc_error *err)
{
    in->long_line.length = 0;
    for (;;) {
        int rc = in->next < in->stop ? DSC_OK : in->decode(in, err);
        if (rc)
            return rc;
        if (in->next == in->stop)
            break;
        const char *start = in->next;
        const char *end = memchr(start, '\n', (size_t)(in->stop - start));
        size_t n = (size_t)((end ? end : in->stop) - start), have = in->long_line.length;
        if (n > DSC_INPUT_LINE_MAX - have)
            return dsc_fail(err, DSC_EINPUT, "%s:%lld: the line is longer than the limit of %d MiB",
                            in->name, (long long)in->line + 1, DSC_INPUT_LINE_MAX >> 20);
        in->next = end ? end + 1 : in->stop;
        if (end && have == 0) {
            *out = (dsc_line){start, n, ++in->line, 0};
            return DSC_OK;
        }
        rc = dsc_buffer_append(&in->long_line, start, n, err);
        if (rc)
            return rc;
        if (end)
            break;
    }
    *out = (dsc_line){0};
    if (in->long_line.length)
        *out = (dsc_line){in->long_line.data, in->long_line.length, ++in->line, 0};
    return DSC_OK;
}

static bool is_blank(const dsc_line *line)
{
    for (size_t i = 0; i < line->length; i++)
        if (line->bytes[i] != ' ' && line->bytes[i] != '\t')
            return false;
    return true;
}

int dsc_input_line(dsc_input *in, dsc_line *out, dsc_error *err)
{
    if (in->broken.status) {
        *out = (dsc_line){0};
        return dsc_fail(err, in->broken.status, "%s", in->broken.message);
    }
    do {
        int rc = take_line(in, out, &in->broken);
        if (rc) {
            *out = (dsc_line){0};
            return dsc_fail(err, rc, "%s", in->broken.message);
        }
        if (!out->bytes)
            return DSC_OK;
        if (out->number == 1 && out->length >= 3 && memcmp(out->bytes, "\xef\xbb\xbf", 3) == 0) {
            out->bytes += 3;
            out->length -= 3;
        }
        if (out->length && out->bytes[out->length - 1] == '\r')
            out->length--;
    } while (is_blank(out));
    const char *nul = memchr(out->bytes, '\0', out->length);
    if (nul)
        return dsc_fail(err, DSC_EINPUT, "%s:%lld: byte %td of the line is NUL", in->name,
                        (long long)out->number, nul - out->bytes + 1);
    return DSC_OK;
}

bool dsc_input_broken(const dsc_input *in)
{
    return in->broken.status != DSC_OK;
}

const char *dsc_input_name(const dsc_input *in)
{
    return in->name;
}

int64_t dsc_input_position(const dsc_input *in)
{
    return in->raw_total - (int64_t)(in->raw_stop - in->raw_next);
}

void dsc_input_sha256(const dsc_input *in, char hex[DSC_SHA256_HEX])
{
    dsc_sha256 s = in->sha256;
    dsc_sha256_final(&s, hex);
}
