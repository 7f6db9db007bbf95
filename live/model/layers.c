// SPDX-License-Identifier: Apache-2.0
// Reads which layers have a window and which are rotated. A missing list is made as transformers'
// configuration classes make it.
#include "live/model/layers.h"

#include <inttypes.h>
#include <string.h>

// A list with an entry for each layer. false: it is missing, or an error was recorded.
static bool find_list(const live_config *c, const char *name, json_t **list, const live_keys *k)
{
    *list = live_key(k, name, NULL);
    if (!*list)
        return false;
    if (!json_is_array(*list))
        live_key_fail(k, "'%s' is not a list", name);
    else if (json_array_size(*list) != (size_t)c->layers)
        live_key_fail(k, "'%s' has %zu entries; there are %" PRId64 " layers", name,
                      json_array_size(*list), c->layers);
    return !k->err->status;
}

// transformers 5 lists the attention type of each layer. Returns whether the list is present.
static bool read_types(live_config *c, const live_keys *k)
{
    json_t *types, *type;
    size_t i;
    json_array_foreach(live_key(k, "layer_types", NULL), i, type)
    {
        const char *text = json_string_value(type);
        if (!text || (strcmp(text, "full_attention") && strcmp(text, "sliding_attention")))
            live_key_fail(k,
                          "'layer_types[%zu]' \"%.40s\" is not supported (full_attention and "
                          "sliding_attention are)",
                          i, text ? text : "(not a string)");
    }
    if (k->err->status || !find_list(c, "layer_types", &types, k))
        return false;
    json_array_foreach(types, i, type) c->layer[i] |=
        *json_string_value(type) == 'f' ? LIVE_LAYER_FULL : 0;
    return true;
}

// no_rope_layers contains 0 for the layers that are not rotated.
static void read_rotated(live_config *c, const live_keys *k)
{
    json_t *list, *x;
    size_t at;
    const int64_t interval = live_key_count(k, "no_rope_layer_interval", NULL, 1, INT32_MAX, 4);
    const bool listed = find_list(c, "no_rope_layers", &list, k);
    for (int64_t i = 0; i < c->layers && !listed; i++)
        c->layer[i] |= (i + 1) % interval ? 0 : LIVE_LAYER_UNROTATED;
    if (!listed)
        return;
    json_array_foreach(list, at, x)
    {
        const json_int_t rotated = json_integer_value(x);
        if (!json_is_integer(x) || rotated < 0 || rotated > 1)
            live_key_fail(k, "'no_rope_layers[%zu]' must be 1 (rotated) or 0", at);
        c->layer[at] |= rotated ? 0 : LIVE_LAYER_UNROTATED;
    }
}

static bool is_full(const live_config *c, live_windows which, int64_t number, int64_t i)
{
    return which == LIVE_WINDOWS_SWITCHED  ? i < number
           : which == LIVE_WINDOWS_PATTERN ? (i + 1) % number == 0
                                           : !(c->layer[i] & LIVE_LAYER_UNROTATED);
}

// One description of each case: no window, a window in all layers, or in some.
static void simplify(live_config *c, bool windows)
{
    int64_t full = 0;
    for (int64_t i = 0; i < c->layers; i++)
        full += !windows || c->layer[i] & LIVE_LAYER_FULL;
    if (full == c->layers)
        c->window = 0;
    for (int64_t i = 0; i < c->layers && full == c->layers; i++)
        c->layer[i] &= (uint8_t)~LIVE_LAYER_FULL;
}

int live_layers_read(live_config *c, live_windows which, int64_t window, const live_keys *k)
{
    static const struct {
        const char *name;
        int64_t least, absent;
    } number[] = {[LIVE_WINDOWS_SWITCHED] = {"max_window_layers", 0, 28},
                  [LIVE_WINDOWS_PATTERN] = {"sliding_window_pattern", 1, 6},
                  [LIVE_WINDOWS_UNROTATED] = {NULL, 0, 0}};
    if (which == LIVE_WINDOWS_NONE)
        return DSC_OK;
    if (which == LIVE_WINDOWS_UNROTATED)
        read_rotated(c, k);
    if (window ? !json_is_null(json_object_get(k->object, "sliding_window"))
               : live_key(k, "sliding_window", NULL) != NULL)
        c->window = live_key_count(k, "sliding_window", NULL, 1, INT32_MAX, window);
    if (which == LIVE_WINDOWS_SWITCHED_ALL && !live_key_flag(k, "use_sliding_window", false))
        c->window = 0;
    if (k->err->status || which == LIVE_WINDOWS_ALL || which == LIVE_WINDOWS_SWITCHED_ALL)
        return k->err->status;
    const bool listed = read_types(c, k);
    const int64_t n = number[which].name
                          ? live_key_count(k, number[which].name, NULL, number[which].least,
                                           INT32_MAX, number[which].absent)
                          : 0;
    for (int64_t i = 0; i < c->layers && !listed && !k->err->status; i++)
        c->layer[i] |= is_full(c, which, n, i) ? LIVE_LAYER_FULL : 0;
    const bool use = which == LIVE_WINDOWS_PATTERN || live_key_flag(k, "use_sliding_window", false);
    for (int64_t i = 0; i < c->layers && which == LIVE_WINDOWS_PATTERN && !c->window; i++)
        if (!(c->layer[i] & LIVE_LAYER_FULL))
            return live_key_fail(k, "'sliding_window' is null, but layer %" PRId64 " has one", i);
    if (!k->err->status)
        simplify(c, use && c->window);
    return k->err->status;
}

int live_experts_read(live_config *c, const live_keys *k)
{
    enum { MOST_EXPERTS = 4096, MOST_WIDTH = 1 << 20 };
    json_t *list = live_key(k, "mlp_only_layers", NULL), *x;
    size_t at;
    c->experts = live_key_count(k, "num_experts", "num_local_experts", 0, MOST_EXPERTS, 128);
    if (!c->experts || k->err->status)
        return k->err->status;
    c->experts_per_token =
        live_key_count(k, "num_experts_per_tok", NULL, 1, c->experts, c->experts < 8 ? 0 : 8);
    c->expert_feed_forward = live_key_count(k, "moe_intermediate_size", NULL, 1, MOST_WIDTH, 768);
    c->experts_normalized = live_key_flag(k, "norm_topk_prob", false);
    const int64_t step = live_key_count(k, "decoder_sparse_step", NULL, 1, INT32_MAX, 1);
    for (int64_t i = 0; i < c->layers; i++)
        c->layer[i] |= (i + 1) % step ? LIVE_LAYER_DENSE : 0;
    if (list && !json_is_array(list))
        return live_key_fail(k, "'mlp_only_layers' is not a list");
    json_array_foreach(list, at, x)
    {
        const json_int_t i = json_integer_value(x);
        if (!json_is_integer(x) || i < 0 || i >= c->layers)
            return live_key_fail(k,
                                 "'mlp_only_layers[%zu]' must be the number of a layer, from 0 to "
                                 "%" PRId64,
                                 at, c->layers - 1);
        c->layer[i] |= LIVE_LAYER_DENSE;
    }
    return k->err->status;
}
