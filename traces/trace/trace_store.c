// SPDX-License-Identifier: Apache-2.0
// Writes shards in one background thread and hashes groups of finished shards in another, then
// lists them in a manifest (trace_store.h).
#include "traces/trace/trace_store.h"

#include "base/sha256.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

// --- shards and manifests ----------------------------------------------------------------------

static dsc_tensor tensor_of(const dsc_trace_store *s, int c, char name[DSC_COLUMN_NAME_BYTES])
{
    dsc_tensor t = {.name = dsc_column_name(&s->info, c, name),
                    .dtype = dsc_shard_dtype(s->columns, c),
                    .data = s->columns->column[c].data};
    t.rank = 1 + dsc_column_shape(&s->info, c, t.shape + 1);
    t.shape[0] = (int64_t)s->columns->column[c].count / dsc_column_width(&s->info, c);
    return t;
}

static int write_columns(const dsc_trace_store *s, const char *path, dsc_error *err)
{
    dsc_tensor tensor[DSC_COLUMNS];
    char name[DSC_COLUMNS][DSC_COLUMN_NAME_BYTES];
    size_t count = 0;
    for (int c = 0; c < DSC_COLUMNS; c++)
        if (dsc_column_recorded(&s->info, c)) {
            tensor[count] = tensor_of(s, c, name[count]);
            count++;
        }
    return dsc_safetensors_write(path, tensor, count, err);
}

static int write_shard(dsc_trace_store *s, dsc_error *err)
{
    char *path = NULL;
    struct stat st;
    int rc = dsc_resize(&s->shard, &s->capacity, s->shards + 1, err);
    if (!rc)
        rc = dsc_trace_shard_path(&path, s->folder, s->shards, err);
    if (!rc)
        rc = write_columns(s, path, err);
    if (!rc && stat(path, &st))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot stat %s", path);
    free(path);
    if (rc)
        return rc;
    s->shard[s->shards] = s->columns->entry;
    s->shard[s->shards++].bytes = st.st_size;
    return DSC_OK;
}

// --- groups ------------------------------------------------------------------------------------

static int hash_group(dsc_store_group *g, dsc_error *err)
{
    char *path[DSC_STORE_GROUP] = {NULL};
    int rc = DSC_OK;
    for (size_t i = 0; i < g->count && !rc; i++)
        rc = dsc_trace_shard_path(&path[i], g->folder, g->first + i, err);
    if (!rc)
        rc = dsc_sha256_files((const char *const *)path, g->count, g->sha256, err);
    for (size_t i = 0; i < g->count; i++)
        free(path[i]);
    return rc;
}

static void *run_group(void *argument)
{
    dsc_store_group *g = argument;
    hash_group(g, &g->failed);
    return NULL;
}

static int write_manifest(dsc_trace_store *s, size_t shards, dsc_trace_info *info, dsc_error *err)
{
    json_t *manifest = NULL;
    dsc_trace_hash(s->shard, shards, info->hash);
    int rc = dsc_manifest_make(&manifest, info, s->shard, shards, err);
    if (!rc)
        rc = dsc_manifest_write(manifest, s->folder, s->append || s->saved > 0, err);
    json_decref(manifest);
    return rc;
}

int dsc_trace_store_manifest(dsc_trace_store *s, dsc_trace_info *info, dsc_error *err)
{
    return write_manifest(s, s->shards, info, err);
}

// --- threads -----------------------------------------------------------------------------------

// Blocks all signals in the new thread, so that the caller's threads handle them. Runs the function
// at once when no thread can be created.
static void start(bool *busy, pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *busy = pthread_create(thread, NULL, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!*busy)
        run(argument);
}

static void join(bool *busy, pthread_t thread)
{
    if (*busy)
        pthread_join(thread, NULL);
    *busy = false;
}

// Starts hashing all shards that are not hashed yet.
static void begin_group(dsc_trace_store *s)
{
    dsc_store_group *g = &s->hashing;
    g->folder = s->folder;
    g->first = s->hashed;
    g->count = s->shards - s->hashed;
    g->info = s->written;
    start(&g->busy, &g->thread, run_group, g);
}

// Waits for the group that was started, if any, and stores its hashes.
static int end_group(dsc_trace_store *s, dsc_error *err)
{
    dsc_store_group *g = &s->hashing;
    join(&g->busy, g->thread);
    if (g->failed.status)
        return dsc_fail(err, g->failed.status, "%s", g->failed.message);
    for (size_t i = 0; i < g->count; i++)
        memcpy(s->shard[g->first + i].sha256, g->sha256[i], DSC_SHA256_HEX);
    s->hashed += g->count;
    g->count = 0;
    return DSC_OK;
}

// Writes a manifest of the hashed shards; `info` describes the trace that ends with them.
static int name_hashed(dsc_trace_store *s, dsc_trace_info *info, dsc_error *err)
{
    if (s->append || s->hashed == 0)
        return DSC_OK;
    int rc = write_manifest(s, s->hashed, info, err);
    s->saved = rc ? s->saved : info->requests;
    return rc;
}

static int name_group(dsc_trace_store *s, dsc_error *err)
{
    bool any = s->hashing.count > 0;
    int rc = end_group(s, err);
    return rc || !any ? rc : name_hashed(s, &s->hashing.info, err);
}

// After a failure, keeps the finished shards if a manifest of them can be written.
static void name_all(dsc_trace_store *s)
{
    if (end_group(s, NULL))
        return;
    begin_group(s);
    if (!end_group(s, NULL))
        name_hashed(s, &s->written, NULL);
}

// Writes a shard and starts hashing a group when it is complete.
static int store(dsc_trace_store *s, dsc_error *err)
{
    int rc = write_shard(s, err);
    if (rc) {
        name_all(s);
        return rc;
    }
    s->written = s->info;
    rc = name_group(s, err);
    if (!rc && s->shards - s->hashed >= s->group)
        begin_group(s);
    return rc || s->group > 1 ? rc : name_group(s, err);
}

static void *run(void *argument)
{
    dsc_trace_store *s = argument;
    store(s, &s->failed);
    return NULL;
}

static int wait_for(dsc_trace_store *s, dsc_error *err)
{
    join(&s->busy, s->thread);
    return s->failed.status ? dsc_fail(err, s->failed.status, "%s", s->failed.message) : DSC_OK;
}

int dsc_trace_store_put(dsc_trace_store *s, const dsc_shard_columns *columns,
                        const dsc_trace_info *info, dsc_error *err)
{
    int rc = wait_for(s, err);
    if (rc)
        return rc;
    s->columns = columns;
    s->info = *info;
    start(&s->busy, &s->thread, run, s);
    return s->busy ? DSC_OK : wait_for(s, err);
}

// Hashes the last group in this thread, possibly while the group before it is still being hashed.
static int store_last(dsc_trace_store *s, const dsc_shard_columns *columns, dsc_error *err)
{
    s->columns = columns;
    int rc = columns ? write_shard(s, err) : DSC_OK;
    if (rc) {
        name_all(s);
        return rc;
    }
    size_t begun = s->hashed + s->hashing.count;
    dsc_store_group last = {.folder = s->folder, .first = begun, .count = s->shards - begun};
    rc = hash_group(&last, err);
    if (!rc)
        rc = end_group(s, err);
    if (rc)
        return rc;
    s->hashing = last;
    return end_group(s, err);
}

int dsc_trace_store_finish(dsc_trace_store *s, const dsc_shard_columns *columns,
                           const dsc_trace_info *info, dsc_error *err)
{
    int rc = wait_for(s, err);
    if (rc)
        return rc;
    s->info = *info;
    store_last(s, columns, &s->failed);
    return wait_for(s, err);
}

void dsc_trace_store_fini(dsc_trace_store *s)
{
    wait_for(s, NULL);
    join(&s->hashing.busy, s->hashing.thread);
    free(s->shard);
    s->shard = NULL;
}
