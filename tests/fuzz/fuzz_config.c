// SPDX-License-Identifier: Apache-2.0
// Fuzzes the configuration of a checkpoint. Input: a byte (bit 0: with shards), config.json, NUL,
// generation_config.json (none: no such file), NUL, the index (with shards, which are two of two
// tensors each).
#include "live/model/checkpoint.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FUZZ_FORMAT(config, .head = 1, .parts = 3, .change = {fuzz_change_json})

// Its folder: the file is there, or not when it is empty.
static void put(const char *name, fuzz_bytes file)
{
    char path[64];
    snprintf(path, sizeof path, "checkpoint/%s", name);
    if (file.size)
        fuzz_file(path, file.data, file.size);
    else
        unlink(fuzz_path(path));
}

static void put_shard(const char *name, const char *first, const char *second)
{
    unsigned char bytes[512] = {0};
    int n =
        snprintf((char *)bytes + 8, sizeof bytes - 8,
                 "{\"%s\": {\"dtype\": \"BF16\", \"shape\": [4, 2], \"data_offsets\": [0, 16]}, "
                 "\"%s\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [16, 32]}}",
                 first, second);
    n = (n + 7) / 8 * 8;
    for (int i = 8; i < 8 + n; i++)
        bytes[i] = bytes[i] ? bytes[i] : ' ';
    bytes[0] = (unsigned char)n;
    bytes[1] = (unsigned char)(n >> 8);
    put(name, (fuzz_bytes){bytes, (size_t)n + 8 + 32});
}

// Checks that the values are in the ranges on which the forward pass relies.
static void check_config(const live_config *c)
{
    bool head = c->family == LIVE_MEDUSA;
    fuzz_require(c->hidden >= 1 && c->vocab >= 1, "sizes", NULL);
    fuzz_require(head || (c->layers >= 1 && c->feed_forward >= 1 && c->positions >= 1), "sizes",
                 NULL);
    fuzz_require(head || (c->kv_heads >= 1 && c->heads % c->kv_heads == 0 && c->head >= 1),
                 "heads share keys evenly", NULL);
    fuzz_require((c->family != LIVE_GPT2 && c->family != LIVE_NEOX) ||
                     (c->kv_heads == c->heads && c->head * c->heads == c->hidden),
                 "one tensor of queries, keys and values", NULL);
    fuzz_require(c->rotated >= 0 && c->rotated <= c->head && c->rotated % 2 == 0, "pairs", NULL);
    fuzz_require(c->window >= 0 && c->ends >= 0 && c->ends <= LIVE_MAX_ENDS, "window, ends", NULL);
    for (int i = 0; i < c->ends; i++)
        fuzz_require(c->end[i] >= 0 && c->end[i] < c->vocab, "an end is a token", NULL);
    fuzz_require(c->begin >= -1 && c->begin < c->vocab, "the beginning is a token", NULL);
    double bytes = live_config_weight_bytes(c, c->dtype);
    fuzz_require(isfinite(bytes) && bytes > 0, "weights take memory", NULL);
    static float angle[50000];
    if (c->rotated / 2 <= 50000)
        live_config_rope(c, false, angle);
    for (int64_t i = 0; i < c->rotated / 2 && i < 50000; i++)
        fuzz_require(isfinite(angle[i]), "angles are finite", NULL);
}

static void check_checkpoint(const char *folder)
{
    live_checkpoint *cp;
    dsc_error err = {0};
    int rc = live_checkpoint_open(&cp, folder, &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return;
    }
    size_t shards = live_checkpoint_shards(cp), at = shards;
    for (size_t i = 0; i < shards; i++) {
        for (size_t k = 0; k < live_checkpoint_count(cp, i); k++) {
            const dsc_tensor *t = live_checkpoint_at(cp, i, k);
            fuzz_require(live_checkpoint_find(cp, t->name, &at) == t && at == i,
                         "a tensor is in one shard", NULL);
        }
    }
    live_checkpoint_close(cp);
}

FUZZ_TARGET(config)
{
    fuzz_bytes in = {data, size};
    bool shards = fuzz_byte(&in) & 1;
    char folder[128];
    snprintf(folder, sizeof folder, "%s", fuzz_path("checkpoint"));
    mkdir(folder, 0700);
    put("config.json", fuzz_before(&in, 0));
    put("generation_config.json", fuzz_before(&in, 0));
    put("model.safetensors.index.json", shards ? in : (fuzz_bytes){0});
    if (shards) {
        put_shard("a.safetensors", "fc.weight", "fc.bias");
        put_shard("b.safetensors", "0.1.weight", "x");
    }
    live_config c;
    dsc_error err = {0};
    int rc = live_config_read(&c, folder, &err);
    if (rc)
        fuzz_refused(rc, &err);
    else
        check_config(&c);
    check_checkpoint(folder);
    return 0;
}
