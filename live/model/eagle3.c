// SPDX-License-Identifier: Apache-2.0
// Configuration and vocabulary of an EAGLE-3 head, as the public heads have them: vLLM,
// vllm/model_executor/models/llama_eagle3.py (583507d), and SGLang,
// python/sglang/srt/models/llama_eagle3.py (d737979). Folders of the speculators library nest the
// block's keys: speculators, src/speculators/models/eagle3/config.py (c05b95b), and vLLM,
// vllm/transformers_utils/configs/speculators/algos.py (583507d).
#include "live/model/eagle3.h"

#include "base/memory.h"
#include "traces/files/d2t.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 1000 };
static const char layers_key[] = "eagle_aux_hidden_state_layer_ids";

// --- configuration -------------------------------------------------------------------------------

// vLLM's list counts the layers before the feature; SGLang's, within eagle_config, names the layer
// whose output the feature is, which is one less.
static int read_taps(live_config *c, const live_keys *k)
{
    json_t *inner = live_key(k, "eagle_config", NULL);
    json_t *plain = live_key(k, layers_key, NULL), *nested = json_object_get(inner, layers_key);
    json_t *list = plain ? plain : nested, *x;
    const int64_t more = plain ? 0 : 1;
    size_t i;
    if (!list || json_is_null(list))
        return DSC_OK;
    if (json_array_size(list) != LIVE_TAPS)
        return live_key_fail(k, "'%s' must be a list of %d layers", layers_key, LIVE_TAPS);
    json_array_foreach(list, i, x)
    {
        const int64_t layer = json_is_integer(x) ? json_integer_value(x) + more : -1;
        if (layer < 0 || layer > MOST_LAYERS || (i && layer <= c->tap[i - 1]))
            return live_key_fail(k, "'%s' must list %d different layers in ascending order",
                                 layers_key, LIVE_TAPS);
        c->tap[i] = layer;
    }
    return DSC_OK;
}

// Norms of later versions, which change every logit.
static int check_norms(const live_keys *k)
{
    static const char *const name[] = {"norm_before_fc", "fc_norm", "norm_output"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (live_key_flag(k, name[i], false))
            return live_key_fail(k, "'%s' true is not supported for an EAGLE-3 head", name[i]);
    return k->err->status;
}

int live_eagle3_enter(live_keys *k)
{
    static const char *const outside[] = {
        "draft_vocab_size",   "target_hidden_size", "norm_before_fc", "fc_norm",
        "norm_output",        layers_key,           "dtype",          "torch_dtype",
        "quantization_config"};
    const char *type = live_key_text(k, "speculators_model_type", NULL, NULL);
    if (!type)
        return k->err->status;
    json_t *block = live_key(k, "transformer_layer_config", NULL);
    if (strcmp(type, "eagle3") != 0)
        return live_key_fail(k, "'speculators_model_type' is \"%.40s\"; only eagle3 is supported",
                             type);
    if (!json_is_object(block))
        return live_key_fail(k, "'transformer_layer_config' is missing or not an object");
    json_t *before = live_key(k, "norm_before_residual", NULL);
    int failed = json_object_set_new(block, "norm_before_residual",
                                     before ? json_incref(before) : json_true());
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        json_t *x = live_key(k, outside[i], NULL);
        if (x)
            failed |= json_object_set(block, outside[i], x);
    }
    if (failed)
        return dsc_fail(k->err, DSC_ENOMEM, "%s: out of memory", k->path);
    json_incref(block);
    json_decref(k->object);
    k->object = block;
    return DSC_OK;
}

int live_eagle3_read(live_config *c, const live_keys *k)
{
    if (c->family != LIVE_LLAMA || c->qk_norm || c->window)
        return live_key_fail(k, "an EAGLE-3 head of a %s block is not supported", c->model_type);
    if (c->layers != 1)
        return live_key_fail(k, "'num_hidden_layers' is %" PRId64 "; an EAGLE-3 head has 1 layer",
                             c->layers);
    if (c->tied)
        return live_key_fail(k, "'tie_word_embeddings' true is not supported for an EAGLE-3 head");
    if (check_norms(k))
        return k->err->status;
    c->norm_before_residual = live_key_flag(k, "norm_before_residual", false);
    const int64_t width = live_key_count(k, "target_hidden_size", NULL, 1, INT32_MAX, c->hidden);
    if (!k->err->status && width != c->hidden)
        return live_key_fail(k,
                             "'target_hidden_size' is %" PRId64 " and 'hidden_size' is %" PRId64
                             "; only equal sizes are supported",
                             width, c->hidden);
    c->family = LIVE_EAGLE3;
    c->draft_vocab = live_key_count(k, "draft_vocab_size", NULL, 1, c->vocab, 0);
    c->fc_bias = live_key_flag(k, "bias", false);
    return k->err->status ? k->err->status : read_taps(c, k);
}

int live_config_taps(const live_config *c, int64_t layers, int64_t tap[LIVE_TAPS], dsc_error *err)
{
    const bool listed = c->tap[LIVE_TAPS - 1] > 0;
    const int64_t usual[LIVE_TAPS] = {2, layers / 2, layers - 3};
    memcpy(tap, listed ? c->tap : usual, sizeof usual);
    if (!listed && (tap[0] >= tap[1] || tap[1] >= tap[2]))
        return dsc_fail(err, DSC_EUSAGE,
                        "a target of %" PRId64 " layers does not have the three usual layers that "
                        "an EAGLE-3 head reads; name them in its config.json with '%s'",
                        layers, layers_key);
    if (tap[LIVE_TAPS - 1] > layers)
        return dsc_fail(err, DSC_EUSAGE,
                        "the EAGLE-3 head reads layer %" PRId64 " ('%s'); the target has %" PRId64
                        " layers",
                        tap[LIVE_TAPS - 1], layers_key, layers);
    return DSC_OK;
}

// --- vocabulary ----------------------------------------------------------------------------------

bool live_eagle3_names(const live_config *c, const char *tensor)
{
    return c->family == LIVE_EAGLE3 && (!strcmp(tensor, "d2t") || !strcmp(tensor, "t2d"));
}

static int check_vector(const char *path, const dsc_tensor *t, dsc_dtype dtype, int64_t count,
                        dsc_error *err)
{
    if (t->dtype == dtype && t->rank == 1 && t->count == count)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "%s: tensor '%s' is not a vector of %" PRId64 " numbers of dtype %s", path,
                    t->name, count, dsc_dtype_name(dtype));
}

static int compare_t2d(const live_config *c, const char *path, const dsc_tensor *t2d,
                       const int32_t *column, dsc_error *err)
{
    const unsigned char *drafted = t2d->data;
    for (int64_t x = 0; x < c->vocab; x++)
        if ((drafted[x] != 0) != (column[x] >= 0))
            return dsc_fail(err, DSC_EINPUT, "%s: tensor 't2d' %s token %" PRId64 ", but 'd2t' %s",
                            path, drafted[x] ? "includes" : "excludes", x,
                            drafted[x] ? "does not" : "includes it");
    return DSC_OK;
}

static int read_columns(const live_config *c, const live_checkpoint *files, int32_t *column,
                        dsc_error *err)
{
    size_t at = 0;
    const dsc_tensor *d2t = live_checkpoint_find(files, "d2t", &at);
    const char *path = live_checkpoint_path(files, at);
    if (!d2t && c->draft_vocab == c->vocab) {
        for (int64_t x = 0; x < c->vocab; x++)
            column[x] = (int32_t)x;
        return DSC_OK;
    }
    if (!d2t)
        return dsc_fail(err, DSC_EINPUT, "%s: tensor 'd2t' of an EAGLE-3 head is missing", path);
    int rc = check_vector(path, d2t, DSC_I64, c->draft_vocab, err);
    if (!rc) {
        rc = dsc_d2t_read(column, c->vocab, d2t->data, c->draft_vocab, err);
        if (rc)
            return dsc_error_prefix(err, rc, "%s", path);
    }
    const dsc_tensor *t2d = live_checkpoint_find(files, "t2d", &at);
    path = live_checkpoint_path(files, at);
    if (!rc && t2d)
        rc = check_vector(path, t2d, DSC_BOOL, c->vocab, err);
    return !rc && t2d ? compare_t2d(c, path, t2d, column, err) : rc;
}

int live_eagle3_columns(live_weights *w, const live_checkpoint *files, dsc_error *err)
{
    const live_config *c = &w->config;
    const size_t bytes = (size_t)c->vocab * sizeof *w->column;
    int32_t *column;
    int rc = dsc_new(&column, (size_t)c->vocab, err);
    for (int64_t x = 0; x < c->vocab && !rc && !files; x++)
        column[x] = x >= c->draft_vocab ? -1 : (int32_t)x;
    if (!rc && files)
        rc = read_columns(c, files, column, err);
    const bool reduced = files && live_checkpoint_find(files, "d2t", NULL);
    if (!rc && reduced)
        rc = dsc_new(&w->drafted, (size_t)c->vocab, err);
    for (int64_t x = 0; x < c->vocab && !rc && reduced; x++)
        w->drafted[x] = column[x] >= 0;
    if (!rc)
        rc = w->backend->type->memory.alloc(w->backend, &w->column, bytes, err);
    if (!rc)
        rc = w->backend->type->memory.upload(w->backend, w->column, column, bytes, err);
    free(column);
    return rc;
}
