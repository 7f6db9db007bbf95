// SPDX-License-Identifier: Apache-2.0
// The columns of a shard, and the checks of what they hold.
#include "traces/trace_internal.h"

#include <float.h>
#include <string.h>

const dsc_column_type dsc_columns[DSC_COLUMNS] = {
    // per request; per request + 1 for the offsets
    [COL_REQUEST_ID] = {"request.id", DSC_U8, ALWAYS, COL_REQUEST_ID_OFFSET, 0},
    [COL_REQUEST_ID_OFFSET] = {"request.id.offset", DSC_I64, ALWAYS, -1, 1},
    [COL_PROMPT_TOK] = {"prompt.tok", DSC_U32, ALWAYS, COL_PROMPT_OFFSET, 0},
    [COL_PROMPT_OFFSET] = {"prompt.offset", DSC_I64, ALWAYS, -1, 1},
    [COL_OUTPUT_TOK] = {"output.tok", DSC_U32, ALWAYS, COL_OUTPUT_OFFSET, 0},
    [COL_OUTPUT_OFFSET] = {"output.offset", DSC_I64, ALWAYS, -1, 1},
    // the references of all requests in one row; request.reference says whose they are
    [COL_REFERENCE_TOK] = {"reference.tok", DSC_U32, ALWAYS, COL_REFERENCE_OFFSET, 0},
    [COL_REFERENCE_OFFSET] = {"reference.offset", DSC_I64, ALWAYS, COL_REQUEST_REFERENCE, 1},
    [COL_REQUEST_REFERENCE] = {"request.reference", DSC_I64, ALWAYS, -1, 1},
    [COL_REFERENCE_KIND] = {"reference.kind", DSC_U8, ALWAYS, COL_REQUEST_REFERENCE, 0},
    // UTF-8
    [COL_PROMPT_TEXT] = {"prompt.text", DSC_U8, WITH_TEXT, COL_PROMPT_TEXT_OFFSET, 0},
    [COL_PROMPT_TEXT_OFFSET] = {"prompt.text.offset", DSC_I64, WITH_TEXT, -1, 1},
    [COL_OUTPUT_TEXT] = {"output.text", DSC_U8, WITH_TEXT, COL_OUTPUT_TEXT_OFFSET, 0},
    [COL_OUTPUT_TEXT_OFFSET] = {"output.text.offset", DSC_I64, WITH_TEXT, -1, 1},
    [COL_REFERENCE_TEXT] = {"reference.text", DSC_U8, WITH_TEXT, COL_REFERENCE_TEXT_OFFSET, 0},
    [COL_REFERENCE_TEXT_OFFSET] = {"reference.text.offset", DSC_I64, WITH_TEXT,
                                   COL_REQUEST_REFERENCE, 1},
    // one JSON object per request, or nothing
    [COL_METADATA] = {"metadata", DSC_U8, ALWAYS, COL_METADATA_OFFSET, 0},
    [COL_METADATA_OFFSET] = {"metadata.offset", DSC_I64, ALWAYS, -1, 1},
    // ln p_target(output token), one per output token
    [COL_TARGET_LOGP] = {"target.logp_y", DSC_F32, WITH_LOGP, COL_OUTPUT_OFFSET, 0},
    // rows, one per output token: lists of tokens, or all tokens
    [COL_DRAFT_ROW_OFFSET] = {"rows.draft.offset", DSC_I64, WITH_LISTS, COL_OUTPUT_OFFSET, 1},
    [COL_DRAFT_ROW_TOKEN] = {"rows.draft.token", DSC_U32, WITH_LISTS, COL_DRAFT_ROW_OFFSET, 0},
    [COL_DRAFT_ROW_LOGP] = {"rows.draft.logp", DSC_F32, WITH_LISTS, COL_DRAFT_ROW_OFFSET, 0},
    [COL_DRAFT_ROW_TAIL] = {"rows.draft.tail", DSC_F32, WITH_LISTS, COL_OUTPUT_OFFSET, 0},
    [COL_DRAFT_ROW_DENSE] = {"rows.draft.dense", DSC_F32, WITH_DENSE, COL_OUTPUT_OFFSET, 0},
    [COL_TARGET_ROW_OFFSET] = {"rows.target.offset", DSC_I64, WITH_LISTS, COL_OUTPUT_OFFSET, 1},
    [COL_TARGET_ROW_TOKEN] = {"rows.target.token", DSC_U32, WITH_LISTS, COL_TARGET_ROW_OFFSET, 0},
    [COL_TARGET_ROW_LOGP] = {"rows.target.logp", DSC_F32, WITH_LISTS, COL_TARGET_ROW_OFFSET, 0},
    [COL_TARGET_ROW_TAIL] = {"rows.target.tail", DSC_F32, WITH_LISTS, COL_OUTPUT_OFFSET, 0},
    [COL_TARGET_ROW_DENSE] = {"rows.target.dense", DSC_F32, WITH_DENSE, COL_OUTPUT_OFFSET, 0},
};

bool dsc_column_recorded(const dsc_trace_info *info, int column)
{
    dsc_model_side side = column < COL_TARGET_ROW_OFFSET ? DSC_SIDE_DRAFT : DSC_SIDE_TARGET;
    switch (dsc_columns[column].recorded) {
    case WITH_TEXT: return info->has_text;
    case WITH_LOGP: return info->has_target_logp;
    case WITH_LISTS: return info->rows[side] == DSC_ROWS_LISTED;
    case WITH_DENSE: return info->rows[side] == DSC_ROWS_DENSE;
    default: return true;
    }
}

enum { BLOCK = 1024 }; // elements looked at between two decisions; divisible by any vector length

// Sign bit set: some id < 0 or > last. (With last >= 0: id >= 0 makes last - id exact.)
static inline uint32_t token_signs(const uint32_t *id, int n, uint32_t last)
{
    uint32_t signs = 0;
    for (int i = 0; i < n; i++)
        signs |= id[i] | (last - id[i]);
    return signs;
}

int64_t dsc_bad_token(const int32_t *id, int64_t count, int32_t vocab_size)
{
    const uint32_t *u = (const uint32_t *)id;
    uint32_t last = (uint32_t)vocab_size - 1;
    int64_t i = 0;
    while (count - i >= BLOCK && !(token_signs(u + i, BLOCK, last) >> 31))
        i += BLOCK;
    for (; i < count; i++)
        if (id[i] < 0 || id[i] >= vocab_size)
            return i;
    return -1;
}

static inline int logp_out(const float *x, int n)
{
    int out = 0;
    for (int i = 0; i < n; i++)
        out |= !(x[i] <= 0) | !(x[i] >= -FLT_MAX); // a NaN fails both
    return out;
}

int64_t dsc_bad_logp(const float *logp, int64_t count)
{
    int64_t i = 0;
    while (count - i >= BLOCK && !logp_out(logp + i, BLOCK))
        i += BLOCK;
    for (; i < count; i++)
        if (logp_out(logp + i, 1))
            return i;
    return -1;
}

static inline int log_mass_out(const float *x, int n)
{
    int out = 0;
    for (int i = 0; i < n; i++)
        out |= !(x[i] <= 0);
    return out;
}

int64_t dsc_bad_log_mass(const float *x, int64_t count)
{
    int64_t i = 0;
    while (count - i >= BLOCK && !log_mass_out(x + i, BLOCK))
        i += BLOCK;
    for (; i < count; i++)
        if (log_mass_out(x + i, 1))
            return i;
    return -1;
}

// +0, or -0 (0x8000) to -inf (0xff80).
static inline int bf16_log_mass_out(const uint16_t *x, int n)
{
    int out = 0;
    for (int i = 0; i < n; i++)
        out |= (x[i] != 0) & ((uint16_t)(x[i] - 0x8000) > 0x7f80);
    return out;
}

int64_t dsc_bad_bf16_log_mass(const uint16_t *x, int64_t count)
{
    int64_t i = 0;
    while (count - i >= BLOCK && !bf16_log_mass_out(x + i, BLOCK))
        i += BLOCK;
    for (; i < count; i++)
        if (bf16_log_mass_out(x + i, 1))
            return i;
    return -1;
}

int64_t dsc_bad_kind(const uint8_t *kind, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (kind[i] != DSC_REFERENCE_DOCUMENT && kind[i] != DSC_REFERENCE_TURN)
            return i;
    return -1;
}

// Sign bit set: some o[1..n] is negative, or (when none is) some step is. o[0] >= 0.
static inline uint64_t offset_signs(const uint64_t *o, int n)
{
    uint64_t signs = 0;
    for (int i = 0; i < n; i++)
        signs |= o[i + 1] | (o[i + 1] - o[i]);
    return signs;
}

int64_t dsc_bad_offset(const int64_t *offset, int64_t count)
{
    if (offset[0])
        return 0;
    const uint64_t *u = (const uint64_t *)offset;
    int64_t i = 0;
    while (count - 1 - i >= BLOCK && !(offset_signs(u + i, BLOCK) >> 63))
        i += BLOCK;
    for (; i + 1 < count; i++)
        if (offset[i + 1] < offset[i])
            return i + 1;
    return -1;
}

// Length of the UTF-8 sequence at s (at most n bytes), or 0. Unicode 15, table 3-7.
static int utf8_sequence(const unsigned char *s, int64_t n)
{
    unsigned char low = 0x80, high = 0xbf; // of the second byte
    int length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] > 0xf4 || length > n)
        return 0;
    switch (s[0]) {
    case 0xe0: low = 0xa0; break;  // no overlong forms
    case 0xed: high = 0x9f; break; // no surrogates
    case 0xf0: low = 0x90; break;
    case 0xf4: high = 0x8f; break; // nothing above U+10FFFF
    }
    if (length > 1 && (s[1] < low || s[1] > high))
        return 0;
    for (int i = 2; i < length; i++)
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    return length;
}

int64_t dsc_bad_utf8(const char *bytes, int64_t length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    for (int64_t i = 0; i < length;) {
        uint64_t eight;
        if (length - i >= 8) {
            memcpy(&eight, s + i, 8);
            if (!(eight & 0x8080808080808080)) { // eight ASCII characters
                i += 8;
                continue;
            }
        }
        int n = utf8_sequence(s + i, length - i);
        if (!n)
            return i;
        i += n;
    }
    return -1;
}
