// SPDX-License-Identifier: Apache-2.0
// Rotary position embeddings (Su et al., arXiv:2104.09864): pair i of the `rotated` numbers of a
// head is rotated by the angle position * theta^(-2i / rotated). Context extension lowers the
// angles: all of them ("linear": Chen et al., arXiv:2306.15595), or the slow ones only ("llama3":
// as published with Llama 3.1), or by a ramp between both (YaRN: Peng et al., arXiv:2309.00071).
// Dynamic NTK scaling lowers them as a text grows beyond the trained length, which is refused.
#include "live/model/rope.h"

#include <math.h>
#include <string.h>

static void read_llama3(live_config *c, const live_keys *k, int64_t original)
{
    c->rope = LIVE_ROPE_LLAMA3;
    c->rope_factor = live_key_real(k, "factor", NULL, 1e-3, 1e6, 0);
    c->rope_low = live_key_real(k, "low_freq_factor", NULL, 1e-3, 1e6, 0);
    c->rope_high = live_key_real(k, "high_freq_factor", NULL, 1e-3, 1e6, 0);
    c->rope_original =
        live_key_count(k, "original_max_position_embeddings", NULL, 1, INT32_MAX, original);
    if (c->rope_high <= c->rope_low)
        live_key_fail(k, "'%shigh_freq_factor' %g must be above low_freq_factor %g", k->where,
                      c->rope_high, c->rope_low);
}

// 0.1 mscale ln(factor) + 1, as transformers' get_mscale.
static double magnitude(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

static void read_yarn(live_config *c, const live_keys *k, int64_t original)
{
    c->rope = LIVE_ROPE_YARN;
    c->rope_original =
        live_key_count(k, "original_max_position_embeddings", NULL, 1, INT32_MAX, original);
    const bool null = json_is_null(json_object_get(k->object, "factor"));
    const double ratio = (double)c->positions / (double)c->rope_original;
    c->rope_factor = live_key_real(k, "factor", NULL, 1e-3, 1e6, null ? ratio : 0);
    c->rope_fast = live_key_real(k, "beta_fast", NULL, 0, 1e6, 0);
    c->rope_slow = live_key_real(k, "beta_slow", NULL, 0, 1e6, 0);
    c->rope_fast = c->rope_fast > 0 ? c->rope_fast : 32;
    c->rope_slow = c->rope_slow > 0 ? c->rope_slow : 1;
    c->rope_truncate = live_key_flag(k, "truncate", true);
    const double mscale = live_key_real(k, "mscale", NULL, 0, 1e6, 0);
    const double all = live_key_real(k, "mscale_all_dim", NULL, 0, 1e6, 0);
    const double usual = mscale > 0 && all > 0
                             ? magnitude(c->rope_factor, mscale) / magnitude(c->rope_factor, all)
                             : magnitude(c->rope_factor, 1);
    c->rope_attention = live_key_real(k, "attention_factor", NULL, 1e-3, 1e3, usual);
    if (c->rope_theta <= 1)
        live_key_fail(k, "'rope_theta' must be above 1 with yarn");
}

static void read_scaling(live_config *c, const live_keys *k, int64_t original)
{
    const char *type = live_key_text(k, "rope_type", "type", "default");
    if (strcmp(type, "linear") == 0) {
        c->rope = LIVE_ROPE_LINEAR;
        c->rope_factor = live_key_real(k, "factor", NULL, 1e-3, 1e6, 0);
    } else if (strcmp(type, "llama3") == 0) {
        read_llama3(c, k, original);
    } else if (strcmp(type, "yarn") == 0) {
        read_yarn(c, k, original);
    } else if (strcmp(type, "dynamic") == 0) {
        c->rope = LIVE_ROPE_DYNAMIC;
        c->rope_factor = live_key_real(k, "factor", NULL, 1e-3, 1e6, 0);
    } else if (strcmp(type, "default") != 0) {
        live_key_fail(k,
                      "'%srope_type' \"%.40s\" is not supported (default, linear, llama3, yarn and "
                      "dynamic are)",
                      k->where, type);
    }
}

// Finds the object that describes the rotation: rope_scaling (transformers 4) or rope_parameters
// (5).
static int find_object(live_keys *rope, const live_keys *k)
{
    bool old = live_key(k, "rope_scaling", NULL) != NULL;
    *rope = *k;
    rope->where = old ? "rope_scaling." : "rope_parameters.";
    rope->object = live_key(k, old ? "rope_scaling" : "rope_parameters", NULL);
    if (rope->object && !json_is_object(rope->object))
        return live_key_fail(k, "'%.*s' is not an object", (int)strlen(rope->where) - 1,
                             rope->where);
    return DSC_OK;
}

static int check_flat(const live_keys *rope, const live_keys *k)
{
    const char *name;
    json_t *value;
    json_object_foreach(rope->object, name, value)
    {
        if (json_is_object(value))
            return live_key_fail(k,
                                 "'%s%.40s': rotations that differ between layers are not "
                                 "implemented",
                                 rope->where, name);
    }
    return DSC_OK;
}

int live_rope_read(live_config *c, const live_keys *k, double share)
{
    live_keys rope;
    if (find_object(&rope, k) || check_flat(&rope, k))
        return k->err->status;
    c->rope_theta = live_key_real(k, "rope_theta", "rotary_emb_base", 1, 1e15, 10000);
    c->rope_theta = live_key_real(&rope, "rope_theta", NULL, 1, 1e15, c->rope_theta);
    share = live_key_real(k, "partial_rotary_factor", "rotary_pct", 1e-6, 1, share);
    share = live_key_real(&rope, "partial_rotary_factor", NULL, 1e-6, 1, share);
    const int64_t original =
        live_key_count(k, "original_max_position_embeddings", NULL, 1, INT32_MAX, c->positions);
    if (rope.object)
        read_scaling(c, &rope, original);
    c->rotated = (int64_t)((double)c->head * share);
    if (share < 1 && c->family != LIVE_NEOX)
        return live_key_fail(k,
                             "partial_rotary_factor %g: partial rotation is implemented for "
                             "gpt_neox only",
                             share);
    if (c->rope == LIVE_ROPE_YARN && c->rotated < c->head && c->rope_attention != 1)
        return live_key_fail(k,
                             "yarn with attention factor %g of a head that is rotated in part "
                             "is not supported",
                             c->rope_attention);
    if (c->rotated < 2 || c->rotated % 2)
        return live_key_fail(k,
                             "%lld of the %lld numbers of a head are rotated; the number must be "
                             "even",
                             (long long)c->rotated, (long long)c->head);
    return k->err->status;
}

// The objects of the two kinds of layers are within rope_parameters (transformers 5), or their keys
// are next to each other.
int live_rope_read_gemma3(live_config *c, const live_keys *k)
{
    static const char *const both = "'rope_parameters' must have 'full_attention' and "
                                    "'sliding_attention'";
    live_keys rope, full, local;
    if (find_object(&rope, k))
        return k->err->status;
    full = local = rope;
    const bool nested = rope.object && !strcmp(rope.where, "rope_parameters.");
    local.object = NULL;
    if (nested) {
        full.object = json_object_get(rope.object, "full_attention");
        full.where = "rope_parameters.full_attention.";
        local.object = json_object_get(rope.object, "sliding_attention");
        local.where = "rope_parameters.sliding_attention.";
        if (!json_is_object(full.object) || !json_is_object(local.object))
            return live_key_fail(k, "%s", both);
    }
    c->rotated = c->head;
    c->rope_theta = live_key_real(k, "rope_theta", NULL, 1, 1e15, 1e6);
    c->rope_theta = live_key_real(&full, "rope_theta", NULL, 1, 1e15, c->rope_theta);
    c->local_theta = live_key_real(k, "rope_local_base_freq", NULL, 1, 1e15, 1e4);
    c->local_theta = live_key_real(&local, "rope_theta", NULL, 1, 1e15, c->local_theta);
    if (full.object)
        read_scaling(c, &full, c->positions);
    const char *type = live_key_text(&local, "rope_type", "type", "default");
    if (strcmp(type, "default"))
        return live_key_fail(k,
                             "'%srope_type' \"%.40s\" is not supported (layers with a window are "
                             "rotated without scaling)",
                             local.where, type);
    if (c->rotated < 2 || c->rotated % 2)
        return live_key_fail(k, "'head_dim' is %lld; it must be even", (long long)c->head);
    return k->err->status;
}

// The number, within the rotated pairs, of the one that turns `turns` times within the original
// context (transformers' find_correction_dim).
static double pair_of_turns(const live_config *c, double turns)
{
    return (double)c->rotated * log((double)c->rope_original / (turns * 2 * M_PI)) /
           (2 * log(c->rope_theta));
}

// Between pairs `low` and `high` the angles change from the model's own to those over `factor`.
typedef struct ramp {
    double low, high;
} ramp;

static ramp yarn_ramp(const live_config *c)
{
    ramp r = {pair_of_turns(c, c->rope_fast), pair_of_turns(c, c->rope_slow)};
    if (c->rope_truncate)
        r = (ramp){floor(r.low), ceil(r.high)};
    r.low = fmax(r.low, 0);
    r.high = fmin(r.high, (double)(c->rotated - 1));
    r.high += r.low == r.high ? 0.001 : 0;
    return r;
}

static float yarn(const live_config *c, ramp r, int64_t pair, float power)
{
    float share = ((float)pair - (float)r.low) / (float)(r.high - r.low);
    share = 1 - (share < 0 ? 0 : share > 1 ? 1 : share); // of the model's own angle
    const float scaled = 1 / ((float)c->rope_factor * power);
    return scaled * (1 - share) + 1 / power * share;
}

// In float and in the order of operations of transformers' modeling_rope_utils.py: at position 8192
// the last bit of inv_freq changes the angle of a pair by up to 5e-4 radians.
void live_config_rope(const live_config *c, bool local, float *inv_freq)
{
    const double theta = local ? c->local_theta : c->rope_theta;
    const live_rope rope = local ? LIVE_ROPE_PLAIN : c->rope;
    const float pi2 = (float)(2 * M_PI), factor = (float)c->rope_factor;
    const float low = (float)c->rope_low, high = (float)c->rope_high;
    const double original = (double)c->rope_original;
    const ramp r = rope == LIVE_ROPE_YARN ? yarn_ramp(c) : (ramp){0};
    for (int64_t i = 0; i < c->rotated / 2; i++) {
        float exponent = (float)(2 * i) / (float)c->rotated;
        const float power = (float)pow((double)(float)theta, (double)exponent);
        float f = rope == LIVE_ROPE_YARN ? yarn(c, r, i, power) : 1.0f / power;
        if (rope == LIVE_ROPE_LINEAR)
            f /= factor;
        if (rope == LIVE_ROPE_FACTORS)
            f /= c->rope_divisor[i];
        if (rope == LIVE_ROPE_LLAMA3) {
            float wavelength = pi2 / f;
            if (wavelength > (float)(original / c->rope_low)) {
                f /= factor;
            } else if (!(wavelength < (float)(original / c->rope_high))) {
                float smooth = ((float)original / wavelength - low) / (high - low);
                f = (1 - smooth) * f / factor + smooth * f;
            }
        }
        inv_freq[i] = f;
    }
}
