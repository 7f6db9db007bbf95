// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of traces. Input: a byte (bit 0: the hashes are corrected, so that the checks
// after them run), the manifest, a NUL, the first shard.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include "traces/import/import.h"
#include "traces/trace/trace_copy.h"
#include "traces/trace/trace_manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

FUZZ_FORMAT(trace, .head = 1, .parts = 2, .change = {fuzz_change_json, fuzz_change_safetensors})

// The manifest with the size and hash of the shard, the hash over these, and its own.
static char *seal(fuzz_bytes manifest, fuzz_bytes shard)
{
    json_t *root = json_loadb((const char *)manifest.data, manifest.size, 0, NULL);
    json_t *first = json_array_get(json_object_get(root, "shards"), 0);
    dsc_shard_entry e = {0};
    char hex[DSC_SHA256_HEX], *text = NULL;
    dsc_sha256 s;
    dsc_sha256_init(&s);
    dsc_sha256_update(&s, shard.data, shard.size);
    dsc_sha256_final(&s, e.sha256);
    dsc_trace_hash(&e, 1, hex);
    if (first) {
        json_object_set_new(first, "bytes", json_integer((json_int_t)shard.size));
        json_object_set_new(first, "sha256", json_string(e.sha256));
        json_object_set_new(root, "hash", json_string(hex));
    }
    if (json_is_object(root) && !dsc_manifest_seal(root, hex, NULL)) {
        json_object_set_new(root, "manifest_sha256", json_string(hex));
        text = json_dumps(root, 0);
    }
    json_decref(root);
    return text;
}

static void use_row(const dsc_row *row, int32_t vocab_size)
{
    void *dist;
    if (vocab_size > 1 << 16 || dsc_alloc(&dist, (size_t)vocab_size, sizeof(double), NULL))
        return;
    double rest = dsc_row_dist(row, vocab_size, dist);
    fuzz_use(&rest, sizeof rest);
    free(dist);
}

// Whatever the reader hands out can be read.
static void use_requests(const dsc_trace *t)
{
    const dsc_trace_info *info = dsc_trace_get_info(t);
    for (int64_t s = 0; s < dsc_trace_shards(t); s++) {
        dsc_shard *shard;
        dsc_error err = {0};
        int rc = dsc_shard_open(&shard, t, s, &err);
        if (rc) {
            fuzz_refused(rc, &err);
            continue;
        }
        for (int64_t i = 0; i < dsc_shard_requests(shard); i++) {
            dsc_request q;
            dsc_row row;
            dsc_shard_request(shard, i, &q);
            for (int64_t r = 0; r < q.references; r++) {
                dsc_token_view v = dsc_request_reference(&q, r);
                fuzz_use(v.id, (size_t)v.count * sizeof *v.id);
            }
            for (dsc_model_side side = 0; side < DSC_SIDES; side++)
                for (int64_t j = 0; j < q.output.count; j++)
                    if (dsc_request_row(&q, side, j, &row))
                        use_row(&row, info->vocab_size);
        }
        for (int i = 0; dsc_trace_recorded(info, i); i++)
            fuzz_require(dsc_shard_recorded_bytes(shard, i) >= 0, "groups have sizes", NULL);
        dsc_shard_close(shard);
    }
    FILE *f = fopen("/dev/null", "w");
    dsc_error err = {0};
    int rc = dsc_trace_export(t, "jsonl", f, &err);
    if (rc)
        fuzz_refused(rc, &err);
    fclose(f);
}

// Checks that a trace that passes verification can be copied, and that the copy passes it.
static void write_again(const dsc_trace *t)
{
    dsc_trace_writer *w;
    dsc_trace *again;
    dsc_request_copy copy = {0};
    dsc_error err = {0};
    int rc =
        dsc_trace_writer_open(&w, fuzz_path("again.dst"), dsc_trace_get_info(t), true, 0, &err);
    for (int64_t s = 0; s < dsc_trace_shards(t) && !rc; s++) {
        dsc_shard *shard;
        rc = dsc_shard_open(&shard, t, s, &err);
        for (int64_t i = 0; !rc && i < dsc_shard_requests(shard); i++) {
            dsc_request q;
            dsc_request_input in;
            dsc_shard_request(shard, i, &q);
            rc = dsc_request_copy_view(&copy, &q, &in, &err);
            if (!rc)
                rc = dsc_trace_writer_add(w, &in, &err);
        }
        dsc_shard_close(shard);
    }
    if (!rc)
        rc = dsc_trace_writer_commit(w, NULL, &err);
    if (!rc && !(rc = dsc_trace_open(&again, fuzz_path("again.dst"), &err))) {
        rc = dsc_trace_verify(again, &err);
        dsc_trace_close(again);
    }
    fuzz_require(rc == DSC_OK, "what was verified can be written and verified", &err);
    dsc_request_copy_fini(&copy);
}

FUZZ_TARGET(trace)
{
    fuzz_bytes in = {data, size};
    bool sealed = fuzz_byte(&in) & 1;
    fuzz_bytes manifest = fuzz_before(&in, '\0');
    char *text = sealed ? seal(manifest, in) : NULL;
    mkdir(fuzz_path("a.dst"), 0700);
    fuzz_file("a.dst/shard-00000.safetensors", in.data, in.size);
    if (text)
        fuzz_file("a.dst/manifest.json", text, strlen(text));
    else
        fuzz_file("a.dst/manifest.json", manifest.data, manifest.size);
    free(text);

    dsc_trace *t;
    dsc_error err = {0};
    int rc = dsc_trace_open(&t, fuzz_path("a.dst"), &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return 0;
    }
    use_requests(t);
    rc = dsc_trace_verify(t, &err);
    if (rc)
        fuzz_refused(rc, &err);
    else
        write_again(t);
    dsc_trace_close(t);
    return 0;
}
