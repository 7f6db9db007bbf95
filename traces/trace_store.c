// SPDX-License-Identifier: Apache-2.0
// traces/trace_store.h.
#include "traces/trace_store.h"

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
    return dsc_safetensors_write(path, tensor, count, NULL, err);
}

static int write_shard(dsc_trace_store *s, dsc_error *err)
{
    void *p = s->shard;
    char *path = NULL;
    struct stat st;
    int rc = dsc_grow(&p, &s->capacity, s->shards + 1, sizeof *s->shard, err);
    s->shard = p;
    if (!rc)
        rc = dsc_trace_shard_path(&path, s->folder, s->shards, err);
    if (!rc)
        rc = write_columns(s, path, err);
    if (!rc && stat(path, &st))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot look at %s", path);
    free(path);
    if (rc)
        return rc;
    s->shard[s->shards] = s->columns->entry;
    s->shard[s->shards++].bytes = st.st_size;
    return DSC_OK;
}

// Of at most DSC_STORE_GROUP.
static int hash_group(dsc_trace_store *s, dsc_error *err)
{
    char *path[DSC_STORE_GROUP] = {NULL}, hex[DSC_STORE_GROUP][DSC_SHA256_HEX];
    size_t count = s->shards - s->hashed;
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc; i++)
        rc = dsc_trace_shard_path(&path[i], s->folder, s->hashed + i, err);
    if (!rc)
        rc = dsc_sha256_files((const char *const *)path, count, hex, err);
    for (size_t i = 0; i < count; i++) {
        if (!rc)
            memcpy(s->shard[s->hashed + i].sha256, hex[i], DSC_SHA256_HEX);
        free(path[i]);
    }
    s->hashed += rc ? 0 : count;
    return rc;
}

int dsc_trace_store_manifest(dsc_trace_store *s, dsc_trace_info *info, dsc_error *err)
{
    json_t *manifest = NULL;
    dsc_trace_hash(s->shard, s->shards, info->hash);
    int rc = dsc_manifest_make(&manifest, info, s->shard, s->shards, err);
    if (!rc)
        rc = dsc_manifest_write(manifest, s->folder, s->append || s->saved > 0, err);
    json_decref(manifest);
    return rc;
}

// Hashes what is finished and names it in a manifest.
static int name_group(dsc_trace_store *s, dsc_error *err)
{
    int rc = hash_group(s, err);
    if (rc || s->append || s->shards == 0)
        return rc;
    rc = dsc_trace_store_manifest(s, &s->written, err);
    s->saved = rc ? s->saved : s->written.requests;
    return rc;
}

static int store(dsc_trace_store *s, bool last, dsc_error *err)
{
    int rc = s->columns ? write_shard(s, err) : DSC_OK;
    if (rc) {
        name_group(s, NULL); // what is finished stays, if there is room for a manifest
        return rc;
    }
    if (s->columns)
        s->written = s->info;
    if (last)
        return hash_group(s, err);
    return s->shards - s->hashed >= s->group ? name_group(s, err) : DSC_OK;
}

// --- the background ----------------------------------------------------------------------------

static void *run(void *argument)
{
    dsc_trace_store *s = argument;
    store(s, false, &s->failed);
    return NULL;
}

// Signals are for the threads that do something about them.
static bool start(dsc_trace_store *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->busy = pthread_create(&s->thread, NULL, run, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->busy;
}

static int wait_for(dsc_trace_store *s, dsc_error *err)
{
    if (s->busy)
        pthread_join(s->thread, NULL);
    s->busy = false;
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
    if (start(s))
        return DSC_OK;
    run(s); // no thread to be had: not in the background, then
    return wait_for(s, err);
}

int dsc_trace_store_finish(dsc_trace_store *s, const dsc_shard_columns *columns,
                           const dsc_trace_info *info, dsc_error *err)
{
    int rc = wait_for(s, err);
    if (rc)
        return rc;
    s->columns = columns;
    s->info = *info;
    store(s, true, &s->failed);
    return wait_for(s, err);
}

void dsc_trace_store_fini(dsc_trace_store *s)
{
    wait_for(s, NULL);
    free(s->shard);
    s->shard = NULL;
}
