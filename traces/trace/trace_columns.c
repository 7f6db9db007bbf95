// SPDX-License-Identifier: Apache-2.0
// The tables of columns, fields and parameters that the reader, the writer, the verifier, imports
// and exports share (format: draftscope-trace(5)). A new column with one element for each output
// token or step needs only a line here.
#include "traces/trace/trace_columns.h"

#include <stdio.h>

// --- columns -----------------------------------------------------------------------------------

#define BY_REQUEST .counted_by = -1, .extra = 1
#define BY_REFERENCE .counted_by = COL_REQUEST_REFERENCE
#define BY_OUTPUT .counted_by = COL_OUTPUT_OFFSET
#define BY_STEP .counted_by = COL_STEP_OFFSET
#define AT(member)                                                                                 \
    .view = offsetof(dsc_request, member), .input = offsetof(dsc_request_input, member)

const dsc_column_type dsc_columns[DSC_COLUMNS] = {
    // per request; per request + 1 for the offsets
    [COL_REQUEST_ID] = {"request.id", DSC_U8, VALUES_ANY, FIELD_TOKENS,
                        .counted_by = COL_REQUEST_ID_OFFSET},
    [COL_REQUEST_ID_OFFSET] = {"request.id.offset", DSC_I64, VALUES_OFFSET, FIELD_TOKENS,
                               BY_REQUEST},
    [COL_PROMPT_TOK] = {"prompt.tok", DSC_U32, VALUES_TOKEN, FIELD_TOKENS,
                        .counted_by = COL_PROMPT_OFFSET},
    [COL_PROMPT_OFFSET] = {"prompt.offset", DSC_I64, VALUES_OFFSET, FIELD_TOKENS, BY_REQUEST},
    [COL_OUTPUT_TOK] = {"output.tok", DSC_U32, VALUES_TOKEN, FIELD_TOKENS, BY_OUTPUT},
    [COL_OUTPUT_OFFSET] = {"output.offset", DSC_I64, VALUES_OFFSET, FIELD_TOKENS, BY_REQUEST},
    // the references of all requests, concatenated; request.reference divides them by request
    [COL_REFERENCE_TOK] = {"reference.tok", DSC_U32, VALUES_TOKEN, FIELD_REFERENCES,
                           .counted_by = COL_REFERENCE_OFFSET},
    [COL_REFERENCE_OFFSET] = {"reference.offset", DSC_I64, VALUES_OFFSET, FIELD_REFERENCES,
                              BY_REFERENCE, .extra = 1},
    [COL_REQUEST_REFERENCE] = {"request.reference", DSC_I64, VALUES_OFFSET, FIELD_REFERENCES,
                               BY_REQUEST},
    [COL_REFERENCE_KIND] = {"reference.kind", DSC_U8, VALUES_KIND, FIELD_REFERENCES, BY_REFERENCE},
    // UTF-8
    [COL_PROMPT_TEXT] = {"prompt.text", DSC_U8, VALUES_ANY, FIELD_TEXT,
                         .counted_by = COL_PROMPT_TEXT_OFFSET},
    [COL_PROMPT_TEXT_OFFSET] = {"prompt.text.offset", DSC_I64, VALUES_OFFSET, FIELD_TEXT,
                                BY_REQUEST},
    [COL_OUTPUT_TEXT] = {"output.text", DSC_U8, VALUES_ANY, FIELD_TEXT,
                         .counted_by = COL_OUTPUT_TEXT_OFFSET},
    [COL_OUTPUT_TEXT_OFFSET] = {"output.text.offset", DSC_I64, VALUES_OFFSET, FIELD_TEXT,
                                BY_REQUEST},
    [COL_REFERENCE_TEXT] = {"reference.text", DSC_U8, VALUES_ANY, FIELD_TEXT,
                            .counted_by = COL_REFERENCE_TEXT_OFFSET},
    [COL_REFERENCE_TEXT_OFFSET] = {"reference.text.offset", DSC_I64, VALUES_OFFSET, FIELD_TEXT,
                                   BY_REFERENCE, .extra = 1},
    // a JSON object per request, or empty
    [COL_METADATA] = {"metadata", DSC_U8, VALUES_ANY, FIELD_METADATA,
                      .counted_by = COL_METADATA_OFFSET},
    [COL_METADATA_OFFSET] = {"metadata.offset", DSC_I64, VALUES_OFFSET, FIELD_METADATA, BY_REQUEST},
    [COL_TARGET_LOGP] = {"target.logp_y", DSC_F32, VALUES_LOGP, FIELD_TARGET_LOGP, BY_OUTPUT,
                         AT(target_logp)},
    // distributions: listed tokens, or all tokens
    [COL_DRAFT_ROW_OFFSET] = {"rows.draft.offset", DSC_I64, VALUES_OFFSET, FIELD_DRAFT_ROWS,
                              BY_OUTPUT, .extra = 1, .kind = DSC_ROWS_LISTED},
    [COL_DRAFT_ROW_TOKEN] = {"rows.draft.token", DSC_U32, VALUES_TOKEN, FIELD_DRAFT_ROWS,
                             .counted_by = COL_DRAFT_ROW_OFFSET, .kind = DSC_ROWS_LISTED},
    [COL_DRAFT_ROW_LOGP] = {"rows.draft.logp", DSC_F32, VALUES_LOGP, FIELD_DRAFT_ROWS,
                            .counted_by = COL_DRAFT_ROW_OFFSET, .kind = DSC_ROWS_LISTED},
    [COL_DRAFT_ROW_TAIL] = {"rows.draft.tail", DSC_F32, VALUES_LOG_MASS, FIELD_DRAFT_ROWS,
                            BY_OUTPUT, .kind = DSC_ROWS_LISTED},
    [COL_DRAFT_ROW_DENSE] = {"rows.draft.dense", DSC_F32, VALUES_LOG_MASS, FIELD_DRAFT_ROWS,
                             BY_OUTPUT, .kind = DSC_ROWS_DENSE, .shape = SHAPE_VOCABULARY},
    [COL_TARGET_ROW_OFFSET] = {"rows.target.offset", DSC_I64, VALUES_OFFSET, FIELD_TARGET_ROWS,
                               BY_OUTPUT, .extra = 1, .kind = DSC_ROWS_LISTED},
    [COL_TARGET_ROW_TOKEN] = {"rows.target.token", DSC_U32, VALUES_TOKEN, FIELD_TARGET_ROWS,
                              .counted_by = COL_TARGET_ROW_OFFSET, .kind = DSC_ROWS_LISTED},
    [COL_TARGET_ROW_LOGP] = {"rows.target.logp", DSC_F32, VALUES_LOGP, FIELD_TARGET_ROWS,
                             .counted_by = COL_TARGET_ROW_OFFSET, .kind = DSC_ROWS_LISTED},
    [COL_TARGET_ROW_TAIL] = {"rows.target.tail", DSC_F32, VALUES_LOG_MASS, FIELD_TARGET_ROWS,
                             BY_OUTPUT, .kind = DSC_ROWS_LISTED},
    [COL_TARGET_ROW_DENSE] = {"rows.target.dense", DSC_F32, VALUES_LOG_MASS, FIELD_TARGET_ROWS,
                              BY_OUTPUT, .kind = DSC_ROWS_DENSE, .shape = SHAPE_VOCABULARY},
    // predictions of the models at each output token
    [COL_DRAFT_LOGP] = {"draft.logp_y", DSC_F32, VALUES_LOG_MASS, FIELD_DRAFT_LOGP, BY_OUTPUT,
                        AT(draft_logp)},
    [COL_DRAFT_ARGMAX] = {"draft.argmax", DSC_U32, VALUES_TOKEN, FIELD_DRAFT_ARGMAX, BY_OUTPUT,
                          AT(replayed.argmax[DSC_SIDE_DRAFT])},
    [COL_TARGET_ARGMAX] = {"target.argmax", DSC_U32, VALUES_TOKEN, FIELD_TARGET_ARGMAX, BY_OUTPUT,
                           AT(replayed.argmax[DSC_SIDE_TARGET])},
    [COL_DRAFT_ENTROPY] = {"draft.entropy", DSC_F32, VALUES_AMOUNT, FIELD_DRAFT_ENTROPY, BY_OUTPUT,
                           AT(replayed.entropy[DSC_SIDE_DRAFT])},
    [COL_TARGET_ENTROPY] = {"target.entropy", DSC_F32, VALUES_AMOUNT, FIELD_TARGET_ENTROPY,
                            BY_OUTPUT, AT(replayed.entropy[DSC_SIDE_TARGET])},
    [COL_DRAFT_RANK] = {"draft.rank_y", DSC_U16, VALUES_RANK, FIELD_DRAFT_RANK, BY_OUTPUT,
                        .shape = SHAPE_RANKS, AT(replayed.draft_rank)},
    [COL_KSEQ] = {"stat.kseq", DSC_F32, VALUES_KSEQ, FIELD_KSEQ, BY_OUTPUT, .shape = SHAPE_KSEQ,
                  AT(sufficient.kseq)},
    [COL_SPECINFER] = {"stat.specinfer", DSC_F32, VALUES_SPECINFER, FIELD_SPECINFER, BY_OUTPUT,
                       .shape = SHAPE_SPECINFER, AT(sufficient.specinfer)},
    [COL_OTM] = {"stat.otm", DSC_F32, VALUES_OTM, FIELD_OTM, BY_OUTPUT, .shape = SHAPE_OTM,
                 AT(sufficient.otm)},
    [COL_DRAFT_ROLLOUT] = {"rollout.draft", DSC_U32, VALUES_TOKEN, FIELD_DRAFT_ROLLOUT, BY_OUTPUT,
                           .shape = SHAPE_DRAFT, AT(rollouts.draft)},
    [COL_TARGET_ROLLOUT] = {"rollout.target", DSC_U32, VALUES_TOKEN, FIELD_TARGET_ROLLOUT,
                            BY_OUTPUT, .shape = SHAPE_TARGET, AT(rollouts.target)},
    // candidates of a dynamic draft tree, marginals of a parallel drafter
    [COL_CANDIDATE_TOKEN] = {"candidate.token", DSC_U32, VALUES_TOKEN, FIELD_CANDIDATES, BY_OUTPUT,
                             .shape = SHAPE_CANDIDATES, AT(candidates.token)},
    [COL_CANDIDATE_PARENT] = {"candidate.parent", DSC_U16, VALUES_PARENT, FIELD_CANDIDATES,
                              BY_OUTPUT, .shape = SHAPE_CANDIDATES, AT(candidates.parent)},
    [COL_CANDIDATE_LOGP] = {"candidate.logp", DSC_F32, VALUES_LOG_MASS, FIELD_CANDIDATES, BY_OUTPUT,
                            .shape = SHAPE_CANDIDATES, AT(candidates.logp)},
    [COL_CANDIDATE_SCORED] = {"candidate.scored", DSC_U16, VALUES_ANY, FIELD_CANDIDATES, BY_OUTPUT,
                              .shape = SHAPE_SCORED, AT(candidates.scored)},
    [COL_MARGINAL_TOKEN] = {"marginal.token", DSC_U32, VALUES_TOKEN, FIELD_MARGINALS, BY_OUTPUT,
                            .shape = SHAPE_MARGINALS, AT(marginals.token)},
    [COL_MARGINAL_LOGP] = {"marginal.logp", DSC_F32, VALUES_LOG_MASS, FIELD_MARGINALS, BY_OUTPUT,
                           .shape = SHAPE_MARGINALS, AT(marginals.logp)},
    [COL_MARGINAL_LOGP_Y] = {"marginal.logp_y", DSC_F32, VALUES_LOG_MASS, FIELD_MARGINALS,
                             BY_OUTPUT, .shape = SHAPE_OFFSETS, AT(marginals.logp_y)},
    // steps
    [COL_STEP_OFFSET] = {"step.offset", DSC_I64, VALUES_OFFSET, FIELD_STEPS, BY_REQUEST},
    [COL_STEP_ACCEPTED] = {"step.accepted", DSC_U16, VALUES_ANY, FIELD_STEPS, BY_STEP,
                           AT(steps.accepted)},
    [COL_STEP_DRAFTED] = {"step.drafted", DSC_U16, VALUES_ANY, FIELD_STEP_DRAFTED, BY_STEP,
                          AT(steps.drafted)},
    [COL_STEP_DRAFT_S] = {"step.draft_s", DSC_F32, VALUES_AMOUNT, FIELD_STEP_DRAFT_S, BY_STEP,
                          AT(steps.draft_s)},
    [COL_STEP_VERIFY_S] = {"step.verify_s", DSC_F32, VALUES_AMOUNT, FIELD_STEP_VERIFY_S, BY_STEP,
                           AT(steps.verify_s)},
    // accept lengths, one column per drafter
    [COL_ACCEPT...
        COL_ACCEPT_LAST] = {"accept.", DSC_U16, VALUES_LENGTH, FIELD_ACCEPT, BY_OUTPUT, AT(accept)},
};

bool dsc_column_recorded(const dsc_trace_info *info, int column)
{
    const dsc_column_type *type = &dsc_columns[column];
    if (column >= COL_ACCEPT)
        return column - COL_ACCEPT < info->drafters;
    unsigned kind = dsc_field_kind(info, type->field);
    return type->kind ? kind == type->kind : kind > 0;
}

dsc_input_columns dsc_input_columns_of(const dsc_trace_info *info)
{
    dsc_input_columns list = {.count = 0};
    for (int c = 0; c < DSC_COLUMNS; c++)
        if (dsc_columns[c].input && dsc_column_recorded(info, c))
            list.column[list.count++] = c;
    return list;
}

const char *dsc_column_name(const dsc_trace_info *info, int column,
                            char name[DSC_COLUMN_NAME_BYTES])
{
    if (column < COL_ACCEPT)
        return dsc_columns[column].name;
    snprintf(name, DSC_COLUMN_NAME_BYTES, "%s%s", dsc_columns[column].name,
             info->drafter[column - COL_ACCEPT].name);
    return name;
}

int dsc_column_shape(const dsc_trace_info *info, int column, int64_t shape[2])
{
    const int64_t k = info->statistics_k;
    shape[0] = shape[1] = 1;
    switch (dsc_columns[column].shape) {
    case SHAPE_NUMBER: return 0;
    case SHAPE_VOCABULARY: shape[0] = info->vocab_size; return 1;
    case SHAPE_RANKS: shape[0] = info->rank_depth; return 1;
    case SHAPE_KSEQ: shape[0] = k, shape[1] = 2; return 2;
    case SHAPE_SPECINFER: shape[0] = k + 1; return 1;
    case SHAPE_OTM: shape[0] = k * (k + 3) / 2; return 1;
    case SHAPE_DRAFT: shape[0] = info->rollout_length; return 1;
    case SHAPE_TARGET: shape[0] = (int64_t)info->rollout_length + 1; return 1;
    case SHAPE_CANDIDATES: shape[0] = info->candidate_nodes; return 1;
    case SHAPE_SCORED: shape[0] = info->candidate_steps; return 1;
    case SHAPE_MARGINALS:
        shape[0] = info->marginal_offsets, shape[1] = info->marginal_top;
        return 2;
    case SHAPE_OFFSETS: shape[0] = info->marginal_offsets; return 1;
    }
    return 0;
}

int64_t dsc_column_width(const dsc_trace_info *info, int column)
{
    int64_t shape[2];
    dsc_column_shape(info, column, shape);
    return shape[0] * shape[1];
}

// --- fields ------------------------------------------------------------------------------------

// The member of dsc_trace_info by which a field is recorded: a flag, or an enumeration of
// kinds. Fields of size 0 are always recorded. Accept lengths are recorded when there are drafters.
static const struct field {
    const char *name[2]; // the names of kinds 1 and 2
    size_t offset, size;
} fields[DSC_FIELDS] = {
#define PLACE(member) offsetof(dsc_trace_info, member), sizeof(((dsc_trace_info *)0)->member)
    [FIELD_TOKENS] = {{"tokens", NULL}, 0, 0},
    [FIELD_REFERENCES] = {{"references", NULL}, 0, 0},
    [FIELD_METADATA] = {{"metadata", NULL}, 0, 0},
    [FIELD_TEXT] = {{"text", NULL}, PLACE(has_text)},
    [FIELD_TARGET_LOGP] = {{"target_logp", NULL}, PLACE(has_target_logp)},
    [FIELD_DRAFT_ROWS] = {{"draft_rows", "draft_rows_dense"}, PLACE(rows[DSC_SIDE_DRAFT])},
    [FIELD_TARGET_ROWS] = {{"target_rows", "target_rows_dense"}, PLACE(rows[DSC_SIDE_TARGET])},
    [FIELD_DRAFT_LOGP] = {{"draft_logp", NULL}, PLACE(has_draft_logp)},
    [FIELD_DRAFT_ARGMAX] = {{"draft_argmax", NULL}, PLACE(has_argmax[DSC_SIDE_DRAFT])},
    [FIELD_TARGET_ARGMAX] = {{"target_argmax", NULL}, PLACE(has_argmax[DSC_SIDE_TARGET])},
    [FIELD_DRAFT_ENTROPY] = {{"draft_entropy", NULL}, PLACE(has_entropy[DSC_SIDE_DRAFT])},
    [FIELD_TARGET_ENTROPY] = {{"target_entropy", NULL}, PLACE(has_entropy[DSC_SIDE_TARGET])},
    [FIELD_DRAFT_RANK] = {{"draft_rank", NULL}, PLACE(has_draft_rank)},
    [FIELD_KSEQ] = {{"kseq", NULL}, PLACE(has_kseq)},
    [FIELD_SPECINFER] = {{"specinfer", NULL}, PLACE(has_specinfer)},
    [FIELD_OTM] = {{"otm", NULL}, PLACE(has_otm)},
    [FIELD_DRAFT_ROLLOUT] = {{"draft_rollout", NULL}, PLACE(has_rollout[DSC_SIDE_DRAFT])},
    [FIELD_TARGET_ROLLOUT] = {{"target_rollout", NULL}, PLACE(has_rollout[DSC_SIDE_TARGET])},
    [FIELD_CANDIDATES] = {{"candidates", NULL}, PLACE(has_candidates)},
    [FIELD_MARGINALS] = {{"marginals", NULL}, PLACE(has_marginals)},
    [FIELD_STEPS] = {{"steps", "steps_aligned"}, PLACE(steps)},
    [FIELD_STEP_DRAFTED] = {{"step_drafted", NULL}, PLACE(has_step_drafted)},
    [FIELD_STEP_DRAFT_S] = {{"step_draft_s", NULL}, PLACE(has_step_draft_s)},
    [FIELD_STEP_VERIFY_S] = {{"step_verify_s", NULL}, PLACE(has_step_verify_s)},
    [FIELD_ACCEPT] = {{"accept", NULL}, PLACE(drafters)},
};

unsigned dsc_field_kind(const dsc_trace_info *info, dsc_field field)
{
    const struct field *f = &fields[field];
    const char *at = (const char *)info + f->offset;
    unsigned kind;
    if (f->size == 0)
        return 1;
    if (f->size == sizeof(bool))
        return *(const bool *)at;
    memcpy(&kind, at, sizeof kind);
    return field == FIELD_ACCEPT ? kind > 0 : kind;
}

void dsc_field_set(dsc_trace_info *info, dsc_field field, unsigned kind)
{
    const struct field *f = &fields[field];
    char *at = (char *)info + f->offset;
    if (f->size == sizeof(bool))
        *(bool *)at = kind > 0;
    else if (f->size)
        memcpy(at, &kind, sizeof kind);
}

const char *dsc_field_name(dsc_field field, unsigned kind)
{
    return kind >= 1 && kind <= 2 ? fields[field].name[kind - 1] : NULL;
}

dsc_field dsc_field_find(const char *name, unsigned *kind)
{
    for (dsc_field f = 0; f < DSC_FIELDS; f++)
        for (*kind = 1; *kind <= 2; ++*kind)
            if (fields[f].name[*kind - 1] && !strcmp(fields[f].name[*kind - 1], name))
                return f;
    return DSC_FIELDS;
}

const char *dsc_rows_name(dsc_model_side side, dsc_rows_kind kind)
{
    return dsc_field_name(side == DSC_SIDE_DRAFT ? FIELD_DRAFT_ROWS : FIELD_TARGET_ROWS, kind);
}

const char *dsc_trace_recorded(const dsc_trace_info *info, int i)
{
    dsc_field f = info ? dsc_field_at(info, i) : DSC_FIELDS;
    return f < DSC_FIELDS ? dsc_field_name(f, dsc_field_kind(info, f)) : NULL;
}

dsc_field dsc_field_at(const dsc_trace_info *info, int i)
{
    for (dsc_field f = 0; i >= 0 && f < DSC_FIELDS; f++)
        if (dsc_field_kind(info, f) && i-- == 0)
            return f;
    return DSC_FIELDS;
}

// --- parameters --------------------------------------------------------------------------------

#define VALUE(member) #member, offsetof(dsc_trace_info, member)

const dsc_parameter dsc_parameters[DSC_PARAMETERS] = {
    {VALUE(rank_depth), UINT16_MAX, FIELD_DRAFT_RANK, FIELD_DRAFT_RANK},
    {VALUE(statistics_k), DSC_STATISTICS_K_MAX, FIELD_KSEQ, FIELD_OTM},
    {VALUE(rollout_length), UINT16_MAX, FIELD_DRAFT_ROLLOUT, FIELD_TARGET_ROLLOUT},
    {VALUE(candidate_steps), UINT16_MAX, FIELD_CANDIDATES, FIELD_CANDIDATES},
    {VALUE(candidate_topk), UINT16_MAX, FIELD_CANDIDATES, FIELD_CANDIDATES},
    {VALUE(candidate_nodes), UINT16_MAX - 1, FIELD_CANDIDATES, FIELD_CANDIDATES},
    {VALUE(marginal_offsets), UINT16_MAX, FIELD_MARGINALS, FIELD_MARGINALS},
    {VALUE(marginal_top), UINT16_MAX, FIELD_MARGINALS, FIELD_MARGINALS},
};

bool dsc_parameter_needed(const dsc_trace_info *info, int parameter)
{
    for (dsc_field f = 0; f < DSC_FIELDS; f++)
        if (dsc_field_has(f, parameter) && dsc_field_kind(info, f))
            return true;
    return false;
}

bool dsc_drafter_name_valid(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_.+-";
    size_t n = strnlen(name, DSC_DRAFTER_NAME_BYTES);
    return n > 0 && n < DSC_DRAFTER_NAME_BYTES && strspn(name, allowed) == n;
}

void dsc_recorded_copy(dsc_trace_info *to, const dsc_trace_info *from)
{
    for (dsc_field f = 0; f < DSC_FIELDS; f++)
        dsc_field_set(to, f, dsc_field_kind(from, f));
    for (int p = 0; p < DSC_PARAMETERS; p++)
        *dsc_parameter_of(to, p) = dsc_parameter_needed(from, p) ? dsc_parameter_value(from, p) : 0;
    to->drafters = from->drafters;
    memcpy(to->drafter, from->drafter, sizeof to->drafter);
}

static int check_drafters(const dsc_trace_info *info, dsc_error *err)
{
    if (info->drafters < 0 || info->drafters > DSC_DRAFTERS_MAX)
        return dsc_fail(err, DSC_EUSAGE, "accept lengths of %d drafters; the limit is %d",
                        (int)info->drafters, DSC_DRAFTERS_MAX);
    for (int i = 0; i < info->drafters; i++) {
        const dsc_drafter_record *d = &info->drafter[i];
        if (!dsc_drafter_name_valid(d->name))
            return dsc_fail(err, DSC_EUSAGE,
                            "a drafter's name must be 1 to %d letters, digits and _.+-, not '%.*s'",
                            DSC_DRAFTER_NAME_BYTES - 1, DSC_DRAFTER_NAME_BYTES, d->name);
        if (d->cap < 1 || d->cap > UINT16_MAX)
            return dsc_fail(err, DSC_EUSAGE, "the cap of drafter %s is %d; it must be 1 to %d",
                            d->name, (int)d->cap, UINT16_MAX);
        for (int j = 0; j < i; j++)
            if (!strcmp(info->drafter[j].name, d->name))
                return dsc_fail(err, DSC_EUSAGE, "two drafters are named %s", d->name);
    }
    return DSC_OK;
}

int dsc_recorded_check(const dsc_trace_info *info, dsc_error *err)
{
    for (dsc_field f = 0; f < DSC_FIELDS; f++) {
        unsigned kind = dsc_field_kind(info, f);
        if (kind && !dsc_field_name(f, kind))
            return dsc_fail(err, DSC_EUSAGE, "unknown kind %u of %s", kind, dsc_field_name(f, 1));
    }
    if (!info->steps &&
        (info->has_step_drafted || info->has_step_draft_s || info->has_step_verify_s))
        return dsc_fail(err, DSC_EUSAGE, "drafted tokens or times of steps require the steps");
    for (int p = 0; p < DSC_PARAMETERS; p++) {
        int32_t value = dsc_parameter_value(info, p);
        if (dsc_parameter_needed(info, p) && (value < 1 || value > dsc_parameters[p].largest))
            return dsc_fail(err, DSC_EUSAGE, "%s is %d; it must be 1 to %d", dsc_parameters[p].name,
                            (int)value, (int)dsc_parameters[p].largest);
    }
    return check_drafters(info, err);
}
