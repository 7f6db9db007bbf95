// SPDX-License-Identifier: Apache-2.0
// Loads weights from a folder. live/model/layout.h defines which tensors form each array; they are
// located and checked by the files' headers, then read once, in file order.
#include "live/model/weights.h"
#include "live/device/clock.h"
#include "live/device/cpu_kernel.h"

#include "base/memory.h"
#include "live/model/eagle3.h"
#include "live/model/fingerprint.h"
#include "live/model/layout.h"
#include "live/model/numbers.h"
#include "live/model/stream.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// live_weights together with what is needed to free it.
typedef struct owned {
    live_weights w;
    live_layout layout;
} owned;

// Where one tensor is stored.
typedef struct job {
    const dsc_tensor *tensor;
    const live_part *part;
    const live_array *array;
    size_t shard;
    dsc_dtype dtype; // that it is uploaded in: the array's; a vector's as stored
    bool
        same; // a tied output matrix that the file stores all the same: compared with the embedding
} job;

typedef struct loader {
    const live_config *config;
    const live_layout *layout;
    live_backend *backend;
    live_checkpoint *files;
    const char *prefix;
    const dsc_dtype *as; // of all matrices, or NULL: as stored
    job *job;            // [jobs], in the order of the files
    size_t jobs;
    unsigned char *whole; // a tensor that is not copied piece by piece
    size_t whole_capacity;
    void *turned; // `whole` in the order of the device's array
    size_t turned_capacity;
    float *wide; // a piece that is converted, in F32 and in its new dtype
    void *narrow;
    size_t wide_capacity, narrow_capacity;
    bool converted; // some tensor was
} loader;

// --- finding tensors ---------------------------------------------------------------------------

// "[3, 4]".
static void list_text(const int64_t *number, int count, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "[");
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? ", " : "", number[i]);
    snprintf(out + at, size - at, "]");
}

static int check_shape(const char *path, const dsc_tensor *t, int rank, int64_t rows, int64_t cols,
                       dsc_error *err)
{
    char is[200], must[80];
    if (t->rank == rank && t->shape[0] == rows && (rank == 1 || t->shape[1] == cols))
        return DSC_OK;
    list_text(t->shape, t->rank, is, sizeof is);
    list_text((int64_t[]){rows, cols}, rank, must, sizeof must);
    return dsc_fail(err, DSC_EINPUT, "%s: tensor '%s' has shape %s; config.json requires %s", path,
                    t->name, is, must);
}

static int check_dtype(const char *path, const dsc_tensor *t, dsc_error *err)
{
    if (t->dtype == DSC_F32 || t->dtype == DSC_F16 || t->dtype == DSC_BF16)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "%s: tensor '%s' has dtype %s, which is not supported (F32, F16 and BF16 are)",
                    path, t->name, dsc_dtype_name(t->dtype));
}

static bool is_half(const live_part *part)
{
    return part->order == LIVE_LEFT || part->order == LIVE_RIGHT;
}

static int find_part(loader *l, const live_array *array, const live_part *part, dsc_error *err)
{
    char name[LIVE_TENSOR_NAME];
    size_t shard = 0;
    live_name(name, l->config->family, l->prefix, part->module, part->bias, part->i, part->j);
    const dsc_tensor *t = live_checkpoint_find(l->files, name, &shard);
    if (!t)
        return dsc_fail(err, DSC_EINPUT, "%s: tensor '%s' is missing (%zu file%s)",
                        live_checkpoint_path(l->files, 0), name, live_checkpoint_shards(l->files),
                        live_checkpoint_shards(l->files) > 1 ? "s" : "");
    const char *path = live_checkpoint_path(l->files, shard);
    const bool turned = part->order == LIVE_TRANSPOSED;
    const int64_t cols = is_half(part) ? 2 * array->cols : array->cols;
    int rc = check_shape(path, t, array->vector ? 1 : 2, turned ? cols : part->rows,
                         turned ? part->rows : cols, err);
    if (!rc)
        rc = check_dtype(path, t, err);
    if (rc)
        return rc;
    bool first = part == &l->layout->part[array->part];
    if (array->matrix && !first && !l->as && array->matrix->dtype != t->dtype)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s' has dtype %s, other rows of the same matrix have %s; "
                        "convert all of them with --dtype",
                        path, name, dsc_dtype_name(t->dtype), dsc_dtype_name(array->matrix->dtype));
    const dsc_dtype dtype = array->matrix && l->as ? *l->as : t->dtype;
    if (array->matrix)
        array->matrix->dtype = dtype;
    l->converted |= dtype != t->dtype;
    l->job[l->jobs++] = (job){t, part, array, shard, dtype, false};
    return DSC_OK;
}

// A stored output matrix that config.json declares tied must equal the embedding.
static int find_tied(loader *l, const live_array *embed, dsc_error *err)
{
    char name[LIVE_TENSOR_NAME], other[LIVE_TENSOR_NAME];
    size_t shard = 0;
    live_name(name, l->config->family, l->prefix, LIVE_HEAD, false, 0, 0);
    const dsc_tensor *t = live_checkpoint_find(l->files, name, &shard);
    if (!t)
        return DSC_OK;
    int rc =
        check_shape(live_checkpoint_path(l->files, shard), t, 2, embed->rows, embed->cols, err);
    live_name(other, l->config->family, l->prefix, LIVE_EMBED, false, 0, 0);
    const dsc_dtype stored = live_checkpoint_find(l->files, other, NULL)->dtype;
    if (!rc && t->dtype != stored)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s' has dtype %s, the embedding that config.json ties it to "
                        "%s",
                        live_checkpoint_path(l->files, shard), name, dsc_dtype_name(t->dtype),
                        dsc_dtype_name(stored));
    l->job[l->jobs++] = (job){t, &l->layout->part[embed->part], embed, shard, t->dtype, true};
    return rc;
}

// EAGLE-1 has no norm before or after its blocks; a checkpoint with one is of a later version.
static int check_eagle(const loader *l, dsc_error *err)
{
    static const live_module absent[] = {LIVE_NORM1, LIVE_FINAL_NORM};
    char name[LIVE_TENSOR_NAME];
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        live_name(name, LIVE_EAGLE, l->prefix, absent[i], false, 0, 0);
        if (live_checkpoint_find(l->files, name, NULL))
            return dsc_fail(err, DSC_EINPUT,
                            "%s: tensor '%s': an EAGLE head with this norm is not supported "
                            "(EAGLE-1's have none)",
                            live_checkpoint_path(l->files, 0), name);
    }
    return DSC_OK;
}

static int by_file_order(const void *pa, const void *pb)
{
    const job *a = pa, *b = pb;
    if (a->shard != b->shard)
        return a->shard < b->shard ? -1 : 1;
    return a->tensor->begin < b->tensor->begin ? -1 : a->tensor->begin > b->tensor->begin;
}

static int find_tensors(loader *l, dsc_error *err)
{
    int rc = dsc_new(&l->job, l->layout->parts + 1, err);
    if (rc)
        return rc;
    l->prefix = live_checkpoint_prefix(l->files, l->config->family);
    if (l->config->family == LIVE_EAGLE)
        rc = check_eagle(l, err);
    for (size_t i = 0; i < l->layout->arrays && !rc; i++) {
        const live_array *array = &l->layout->array[i];
        for (size_t j = 0; j < array->parts && !rc; j++)
            rc = find_part(l, array, &l->layout->part[array->part + j], err);
    }
    if (!rc && l->config->tied)
        rc = find_tied(l, &l->layout->array[0], err);
    qsort(l->job, l->jobs, sizeof *l->job, by_file_order);
    return rc;
}

static int compare_tensors(const void *pa, const void *pb)
{
    const dsc_tensor *const *a = pa, *const *b = pb;
    return *a < *b ? -1 : *a > *b;
}

static bool is_used(const loader *l, const dsc_tensor *const *used, const dsc_tensor *t)
{
    return live_eagle3_names(l->config, t->name) ||
           bsearch(&t, used, l->jobs, sizeof *used, compare_tensors);
}

// A tensor that is left out changes the results, unless live_name_leftover knows it. Counts those
// of parts that are not run.
static int check_leftovers(const loader *l, const dsc_tensor *const *used, int64_t *parts,
                           dsc_error *err)
{
    const dsc_tensor *wrong = NULL;
    size_t wrongs = 0, in = 0;
    for (size_t s = 0; s < live_checkpoint_shards(l->files); s++) {
        for (size_t i = 0; i < live_checkpoint_count(l->files, s); i++) {
            const dsc_tensor *t = live_checkpoint_at(l->files, s, i);
            const live_leftover kind = live_name_leftover(l->config->family, t->name);
            if (kind == LIVE_LEFT_COMPUTED || is_used(l, used, t))
                continue;
            *parts += kind == LIVE_LEFT_PART;
            if (kind == LIVE_LEFT_UNKNOWN && !wrongs++)
                wrong = t, in = s;
        }
    }
    if (!wrong)
        return DSC_OK;
    char more[40] = "";
    if (wrongs > 1)
        snprintf(more, sizeof more, " (and %zu more)", wrongs - 1);
    return dsc_fail(err, DSC_EINPUT,
                    "%s: tensor '%s'%s is not part of the %s model that config.json describes; "
                    "results without it would be wrong",
                    live_checkpoint_path(l->files, in), wrong->name, more, l->config->model_type);
}

// *unused (unless NULL) describes the parts of the checkpoint that are not run.
static int check_unused(const loader *l, char **unused, dsc_error *err)
{
    const dsc_tensor **used;
    dsc_buffer text = {0};
    int64_t parts = 0;
    int rc = dsc_new(&used, l->jobs, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < l->jobs; i++)
        used[i] = l->job[i].tensor;
    qsort(used, l->jobs, sizeof *used, compare_tensors);
    rc = check_leftovers(l, used, &parts, err);
    free(used);
    if (rc || !unused)
        return rc;
    rc = parts ? dsc_buffer_printf(&text, err, "the vision tower (%" PRId64 " tensors)", parts)
               : dsc_buffer_puts(&text, "", err);
    *unused = text.data;
    return rc;
}

// --- reading -----------------------------------------------------------------------------------

// Runs in the reading thread.
static int check_finite(void *user, const live_piece *p, dsc_error *err)
{
    const loader *l = user;
    const job *j = &l->job[p->span];
    const dsc_tensor *t = j->tensor;
    size_t size = dsc_dtype_bytes(t->dtype), count = p->bytes / size, bad;
    if (live_all_finite(p->data, t->dtype, count, &bad))
        return DSC_OK;
    int64_t at = (int64_t)(p->offset / size + bad);
    const char *what = live_is_nan(p->data, t->dtype, bad) ? "NaN" : "an infinity";
    char where[80];
    list_text(t->rank == 1 ? &at : (int64_t[]){at / t->shape[1], at % t->shape[1]},
              t->rank == 1 ? 1 : 2, where, sizeof where);
    return dsc_fail(err, DSC_EINPUT, "%s: tensor '%s' contains %s at %s",
                    live_checkpoint_path(l->files, j->shard), t->name, what, where);
}

static unsigned char *device_row(const live_array *p, int64_t row)
{
    if (p->vector)
        return (unsigned char *)(*p->vector + row);
    size_t bytes = dsc_dtype_bytes(p->matrix->dtype) * (size_t)p->cols;
    return (unsigned char *)p->matrix->data + (size_t)row * bytes;
}

// A piece of a tensor whose rows are grouped by head: the queries, keys or values of one head.
static int upload_interleaved(loader *l, const job *j, const live_piece *p, dsc_error *err)
{
    const live_config *c = l->config;
    size_t row = dsc_dtype_bytes(j->dtype) * (size_t)j->array->cols;
    size_t block = row * (size_t)c->head;
    for (size_t done = 0; done < p->bytes;) {
        size_t at = (size_t)p->offset + done, b = at / block, within = at % block;
        size_t rest = p->bytes - done, n = block - within < rest ? block - within : rest;
        int64_t to = ((int64_t)(b % 3) * c->heads + (int64_t)(b / 3)) * c->head;
        int rc = l->backend->type->memory.upload(l->backend, device_row(j->array, to) + within,
                                                 p->data + done, n, err);
        if (rc)
            return rc;
        done += n;
    }
    return DSC_OK;
}

// Bytes of a tensor in the dtype of its array.
static size_t bytes_of(const job *j)
{
    return (size_t)j->tensor->count * dsc_dtype_bytes(j->dtype);
}

static int gather(loader *l, const job *j, const live_piece *p, dsc_error *err)
{
    size_t bytes = bytes_of(j);
    int rc = dsc_resize(&l->whole, &l->whole_capacity, bytes, err);
    if (rc)
        return rc;
    memcpy(l->whole + p->offset, p->data, p->bytes);
    return DSC_OK;
}

static int room_for_turned(loader *l, size_t bytes, dsc_error *err)
{
    return dsc_grow(&l->turned, &l->turned_capacity, bytes, 1, err);
}

// A vector in F32; biases of GPT-NeoX are reordered.
static int upload_vector(loader *l, const job *j, dsc_error *err)
{
    const live_config *c = l->config;
    size_t count = (size_t)j->part->rows;
    int rc = room_for_turned(l, 2 * count * sizeof(float), err);
    if (rc)
        return rc;
    float *to = l->turned, *plain = to + count;
    live_cpu_kernel_c.widen(plain, l->whole, j->tensor->dtype, (int64_t)count);
    for (size_t i = 0; i < count && c->norm_plus_one && j->array->kind == LIVE_SCALE; i++)
        plain[i] += 1;
    if (j->part->order == LIVE_INTERLEAVED) {
        size_t head = (size_t)c->head, heads = (size_t)c->heads;
        for (size_t b = 0; b < 3 * heads; b++)
            memcpy(to + (b % 3 * heads + b / 3) * head, plain + b * head, head * sizeof *to);
        plain = to;
    }
    return l->backend->type->memory.upload(l->backend, device_row(j->array, j->part->row), plain,
                                           count * sizeof(float), err);
}

// The left or the right half of each row.
static int upload_half(loader *l, const job *j, dsc_error *err)
{
    const size_t rows = (size_t)j->part->rows;
    const size_t half = (size_t)j->array->cols * dsc_dtype_bytes(j->dtype);
    const unsigned char *from = l->whole + (j->part->order == LIVE_RIGHT ? half : 0);
    int rc = room_for_turned(l, rows * half, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < rows; i++)
        memcpy((unsigned char *)l->turned + i * half, from + 2 * i * half, half);
    return l->backend->type->memory.upload(l->backend, device_row(j->array, j->part->row),
                                           l->turned, rows * half, err);
}

static int upload_transposed(loader *l, const job *j, dsc_error *err)
{
    size_t size = dsc_dtype_bytes(j->dtype);
    size_t rows = (size_t)j->part->rows, cols = (size_t)j->array->cols;
    int rc = room_for_turned(l, rows * cols * size, err);
    if (rc)
        return rc;
    live_transpose(l->turned, l->whole, cols, rows, size);
    return l->backend->type->memory.upload(l->backend, device_row(j->array, j->part->row),
                                           l->turned, rows * cols * size, err);
}

// Compares the stored output matrix with the embedding, both in the mapped files.
static int compare_tied(const loader *l, const job *j, const live_piece *p, dsc_error *err)
{
    char name[LIVE_TENSOR_NAME];
    live_name(name, l->config->family, l->prefix, LIVE_EMBED, false, 0, 0);
    const dsc_tensor *embed = live_checkpoint_find(l->files, name, NULL);
    if (memcmp((const unsigned char *)embed->data + p->offset, p->data, p->bytes) == 0)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "%s: tensor '%s' differs from '%s', to which config.json ties it",
                    live_checkpoint_path(l->files, j->shard), j->tensor->name, name);
}

// Rounds a piece to the dtype of its array.
static int convert(loader *l, const job *j, live_piece *p, dsc_error *err)
{
    const size_t from = dsc_dtype_bytes(j->tensor->dtype), to = dsc_dtype_bytes(j->dtype);
    const size_t count = p->bytes / from, first = (size_t)p->offset / from;
    size_t bad;
    int rc = dsc_resize(&l->wide, &l->wide_capacity, count, err);
    if (!rc)
        rc = dsc_grow(&l->narrow, &l->narrow_capacity, count * to, 1, err);
    if (rc)
        return rc;
    live_cpu_kernel_c.widen(l->wide, p->data, j->tensor->dtype, (int64_t)count);
    live_narrow(l->narrow, l->wide, j->dtype, count);
    *p = (live_piece){p->span, first * to, count * to, l->narrow};
    if (live_all_finite(l->narrow, j->dtype, count, &bad))
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "%s: tensor '%s' contains %g, which is beyond the range of --dtype %s",
                    live_checkpoint_path(l->files, j->shard), j->tensor->name, (double)l->wide[bad],
                    j->dtype == DSC_F16 ? "f16" : "bf16");
}

static int take_piece(loader *l, const job *j, const live_piece *stored, dsc_error *err)
{
    live_piece converted = *stored;
    const live_piece *p = &converted;
    if (j->same)
        return compare_tied(l, j, p, err);
    if (j->dtype != j->tensor->dtype) {
        int rc = convert(l, j, &converted, err);
        if (rc)
            return rc;
    }
    bool last = p->offset + p->bytes == bytes_of(j);
    if (j->array->vector || j->part->order == LIVE_TRANSPOSED || is_half(j->part)) {
        int rc = gather(l, j, p, err);
        if (rc || !last)
            return rc;
        if (is_half(j->part))
            return upload_half(l, j, err);
        return j->array->vector ? upload_vector(l, j, err) : upload_transposed(l, j, err);
    }
    if (j->part->order == LIVE_INTERLEAVED)
        return upload_interleaved(l, j, p, err);
    return l->backend->type->memory.upload(
        l->backend, device_row(j->array, j->part->row) + p->offset, p->data, p->bytes, err);
}

static int read_tensors(loader *l, double *bytes, dsc_error *err)
{
    const live_gguf *gguf = live_checkpoint_gguf(l->files);
    live_span *span;
    live_stream *stream = NULL;
    int rc = dsc_new(&span, l->jobs, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < l->jobs; i++) {
        const dsc_tensor *t = l->job[i].tensor;
        span[i] = (live_span){.path = live_checkpoint_path(l->files, l->job[i].shard),
                              .begin = t->begin,
                              .end = t->end};
        if (gguf) {
            span[i].make = live_gguf_make;
            span[i].from = live_gguf_source(gguf, t);
        }
        *bytes += gguf ? 0 : (double)(t->end - t->begin);
    }
    if (gguf)
        *bytes = (double)live_checkpoint_bytes(l->files, 0);
    rc = live_stream_open(&stream, span, l->jobs, check_finite, l, err);
    live_piece piece = {0};
    while (!rc && !(rc = live_stream_next(stream, &piece, err)) && piece.bytes)
        rc = take_piece(l, &l->job[piece.span], &piece, err);
    live_stream_close(stream);
    free(span);
    return rc;
}

static int check_experts(const live_weights *w, dsc_error *err)
{
    const live_backend *b = w->backend;
    return !w->config.experts || b->type->pass.experts
               ? DSC_OK
               : dsc_fail(err, DSC_EABSENT,
                          "%s: a mixture of experts (%s) is run on the CPU only (--device cpu)",
                          b->device, w->config.model_type);
}

// --- the whole ---------------------------------------------------------------------------------

static int load(owned *o, const char *folder, const dsc_dtype *as, char **unused, dsc_error *err)
{
    live_weights *w = &o->w;
    loader l = {.config = &w->config, .layout = &o->layout, .backend = w->backend, .as = as};
    int rc = live_config_read(&w->config, folder, err);
    if (!rc)
        rc = check_experts(w, err);
    if (!rc)
        rc = live_checkpoint_open(&l.files, folder, err);
    if (!rc)
        rc = live_layout_new(&o->layout, w, err);
    if (!rc && live_checkpoint_gguf(l.files))
        live_layout_untransposed(&o->layout);
    if (!rc)
        rc = find_tensors(&l, err);
    if (!rc)
        rc = check_unused(&l, unused, err);
    if (!rc)
        rc = live_layout_alloc(&o->layout, w, err);
    if (!rc)
        rc = read_tensors(&l, &w->file_bytes, err);
    if (!rc && w->config.family == LIVE_EAGLE3)
        rc = live_eagle3_columns(w, l.files, err);
    if (!rc)
        rc = live_fingerprint_files(l.files, w->fingerprint, err);
    if (!rc && l.converted)
        live_fingerprint_converted(*as, w->fingerprint);
    if (!rc) // the matrices' dtype, whatever config.json gives
        w->config.dtype =
            w->layer && w->config.layers ? w->layer[0].qkv.dtype : w->medusa[0].linear.dtype;
    live_checkpoint_close(l.files);
    free(l.job);
    free(l.whole);
    free(l.turned);
    free(l.wide);
    free(l.narrow);
    return rc;
}

// Half-width of the uniform distribution of a matrix. Variance 1 / cols keeps the variance of the
// input. A matrix whose product is added to the residual stream is scaled down by the number of
// additions, so that the stream stays of order one for any number of layers.
static double spread(const live_config *c, const live_array *p)
{
    double variance = p->kind == LIVE_EMBEDDING ? 1 : 1 / (double)p->cols;
    double additions = c->layers ? 2 * (double)c->layers : (double)c->medusa_layers;
    if (p->kind == LIVE_RESIDUAL)
        variance /= additions;
    return sqrt(3 * variance);
}

static int fill_ones(live_backend *b, float *to, int64_t count, dsc_error *err)
{
    float *one;
    int rc = dsc_new(&one, (size_t)count, err);
    if (rc)
        return rc;
    for (int64_t i = 0; i < count; i++)
        one[i] = 1;
    rc = b->type->memory.upload(b, to, one, (size_t)count * sizeof *one, err);
    free(one);
    return rc;
}

static int make(owned *o, const live_config *shape, dsc_dtype dtype, uint64_t seed, dsc_error *err)
{
    live_weights *w = &o->w;
    live_backend *b = w->backend;
    w->config = *shape;
    w->config.dtype = dtype;
    live_fingerprint_random(shape, dtype, seed, w->fingerprint);
    int rc = live_layout_new(&o->layout, w, err);
    for (size_t i = 0; i < o->layout.arrays && !rc; i++)
        if (o->layout.array[i].matrix)
            o->layout.array[i].matrix->dtype = dtype;
    if (!rc)
        rc = live_layout_alloc(&o->layout, w, err);
    for (size_t i = 0; i < o->layout.arrays && !rc; i++) {
        const live_array *p = &o->layout.array[i];
        if (p->matrix)
            rc = b->type->memory.fill(b, p->matrix->data, dtype, p->rows * p->cols, seed, i,
                                      spread(&w->config, p), err);
        else if (p->kind == LIVE_SCALE)
            rc = fill_ones(b, *p->vector, p->rows, err);
    }
    if (!rc && shape->family == LIVE_EAGLE3)
        rc = live_eagle3_columns(w, NULL, err);
    return rc;
}

// Loads the weights of a folder, or (NULL) makes random ones of a shape, which need a dtype.
static int new_weights(live_weights **out, const char *folder, char **unused,
                       const live_config *shape, const dsc_dtype *dtype, uint64_t seed,
                       live_backend *b, dsc_error *err)
{
    owned *o;
    const double start = live_now_s();
    *out = NULL;
    int rc = dsc_new(&o, 1, err);
    if (rc)
        return rc;
    o->w.backend = b;
    rc = folder ? load(o, folder, dtype, unused, err) : make(o, shape, *dtype, seed, err);
    o->w.load_s = live_now_s() - start;
    if (rc)
        live_weights_free(&o->w);
    else
        *out = &o->w;
    if (rc && unused) {
        free(*unused);
        *unused = NULL;
    }
    return rc;
}

int live_weights_load_as(live_weights **out, const char *folder, const dsc_dtype *dtype,
                         live_backend *b, char **unused, dsc_error *err)
{
    if (unused)
        *unused = NULL;
    return new_weights(out, folder, unused, NULL, dtype, 0, b, err);
}

int live_weights_load(live_weights **out, const char *folder, live_backend *b, char **unused,
                      dsc_error *err)
{
    return live_weights_load_as(out, folder, NULL, b, unused, err);
}

int live_weights_random(live_weights **out, const live_config *c, dsc_dtype dtype, uint64_t seed,
                        live_backend *b, dsc_error *err)
{
    return new_weights(out, NULL, NULL, c, &dtype, seed, b, err);
}

int live_weights_borrow(live_weights **out, const live_weights *w, size_t layers, live_backend *b,
                        dsc_error *err)
{
    owned *o;
    *out = NULL;
    int rc = dsc_new(&o, 1, err);
    if (rc)
        return rc;
    o->w = *w;
    o->w.backend = b;
    o->w.medusa = NULL;
    o->w.borrowed = true;
    o->w.bytes = o->w.load_s = o->w.file_bytes = 0;
    rc = dsc_new(&o->w.layer, layers, err);
    if (rc)
        free(o);
    else
        *out = &o->w;
    return rc;
}

void live_weights_free(live_weights *w)
{
    if (!w)
        return;
    owned *o = (owned *)w;
    live_backend *b = w->backend;
    for (size_t i = 0; i < o->layout.arrays; i++) {
        live_array *p = &o->layout.array[i];
        b->type->memory.free(b, p->vector ? (void *)*p->vector : p->matrix->data);
    }
    if (!w->borrowed) {
        b->type->memory.free(b, w->inv_freq);
        b->type->memory.free(b, w->local_freq);
        b->type->memory.free(b, w->column);
        free(w->drafted);
    }
    live_layout_free(&o->layout);
    free(w->layer);
    free(w->medusa);
    free(o);
}
