// SPDX-License-Identifier: Apache-2.0
// Rotary position embeddings (Su et al., arXiv:2104.09864): pair i of the `rotated` numbers of a
// head is rotated by the angle position * theta^(-2i / rotated). Context extension lowers the
// angles: all of them ("linear": Chen et al., arXiv:2306.15595), or the slow ones only ("llama3":
// as published with Llama 3.1).
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

static void read_scaling(live_config *c, const live_keys *k, int64_t original)
{
    const char *type = live_key_text(k, "rope_type", "type", "default");
    if (strcmp(type, "linear") == 0) {
        c->rope = LIVE_ROPE_LINEAR;
        c->rope_factor = live_key_real(k, "factor", NULL, 1e-3, 1e6, 0);
    } else if (strcmp(type, "llama3") == 0) {
        read_llama3(c, k, original);
    } else if (strcmp(type, "default") != 0) {
        live_key_fail(k,
                      "'%srope_type' \"%.40s\" is not supported (default, linear and llama3 are)",
                      k->where, type);
    }
}

// Finds the object that describes the rotation: rope_scaling (transformers 4) or rope_parameters
// (5).
static int find_object(live_keys *rope, const live_keys *k)
{
    const char *name;
    json_t *value;
    bool old = live_key(k, "rope_scaling", NULL) != NULL;
    *rope = *k;
    rope->where = old ? "rope_scaling." : "rope_parameters.";
    rope->object = live_key(k, old ? "rope_scaling" : "rope_parameters", NULL);
    if (rope->object && !json_is_object(rope->object))
        return live_key_fail(k, "'%.*s' is not an object", (int)strlen(rope->where) - 1,
                             rope->where);
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
    if (find_object(&rope, k))
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
    if (c->rotated < 2 || c->rotated % 2)
        return live_key_fail(k,
                             "%lld of the %lld numbers of a head are rotated; the number must be "
                             "even",
                             (long long)c->rotated, (long long)c->head);
    return k->err->status;
}

// In float and in the order of operations of transformers' modeling_rope_utils.py: at position 8192
// the last bit of inv_freq changes the angle of a pair by up to 5e-4 radians.
void live_config_rope(const live_config *c, float *inv_freq)
{
    const float pi2 = (float)(2 * M_PI), factor = (float)c->rope_factor;
    const float low = (float)c->rope_low, high = (float)c->rope_high;
    const double original = (double)c->rope_original;
    for (int64_t i = 0; i < c->rotated / 2; i++) {
        float exponent = (float)(2 * i) / (float)c->rotated;
        float f = 1.0f / (float)pow((double)(float)c->rope_theta, (double)exponent);
        if (c->rope == LIVE_ROPE_LINEAR)
            f /= factor;
        if (c->rope == LIVE_ROPE_FACTORS)
            f /= c->rope_divisor[i];
        if (c->rope == LIVE_ROPE_LLAMA3) {
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
