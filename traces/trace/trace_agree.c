// SPDX-License-Identifier: Apache-2.0
// Compares what two traces record: whether their requests can be in one trace, and which fields
// they have in common.
#include "traces/trace/trace_agree.h"
#include "traces/trace/trace_columns.h"

int dsc_tokenizers_agree(const dsc_trace_info *a, const char *name_a, const dsc_trace_info *b,
                         const char *name_b, dsc_error *err)
{
    if (strcmp(a->tokenizer_name, b->tokenizer_name) != 0)
        return dsc_fail(err, DSC_EUSAGE, "the tokenizer of %s is '%s', but that of %s is '%s'",
                        name_a, a->tokenizer_name, name_b, b->tokenizer_name);
    if (strcmp(a->tokenizer_sha256, b->tokenizer_sha256) != 0)
        return dsc_fail(
            err, DSC_EUSAGE,
            "the tokenizers of %s and %s, both named '%s', are different files: SHA-256 "
            "'%.16s...' and '%.16s...'",
            name_a, name_b, a->tokenizer_name, a->tokenizer_sha256, b->tokenizer_sha256);
    if (a->vocab_size != b->vocab_size)
        return dsc_fail(err, DSC_EUSAGE, "the vocabulary of %s has %d tokens, that of %s has %d",
                        name_a, (int)a->vocab_size, name_b, (int)b->vocab_size);
    if (a->eos_token != b->eos_token)
        return dsc_fail(err, DSC_EUSAGE,
                        "the EOS token of %s is %d, that of %s is %d (-1: unknown)", name_a,
                        (int)a->eos_token, name_b, (int)b->eos_token);
    return DSC_OK;
}

int dsc_drafter_number(const dsc_trace_info *info, const char *name)
{
    for (int i = 0; i < info->drafters; i++)
        if (!strcmp(info->drafter[i].name, name))
            return i;
    return -1;
}

// Checks that b has the drafters of a, with the same caps.
static int drafters_agree(const dsc_trace_info *a, const char *name_a, const dsc_trace_info *b,
                          const char *name_b, dsc_error *err)
{
    for (int i = 0; i < a->drafters; i++) {
        const dsc_drafter_record *d = &a->drafter[i];
        int other = dsc_drafter_number(b, d->name);
        if (other < 0)
            return dsc_fail(err, DSC_EUSAGE, "%s has accept.%s, but %s does not", name_a, d->name,
                            name_b);
        if (b->drafter[other].cap != d->cap)
            return dsc_fail(err, DSC_EUSAGE, "the cap of accept.%s is %d in %s, but %d in %s",
                            d->name, (int)d->cap, name_a, (int)b->drafter[other].cap, name_b);
    }
    return DSC_OK;
}

int dsc_trace_agree(const dsc_trace_info *a, const char *name_a, const dsc_trace_info *b,
                    const char *name_b, dsc_error *err)
{
    int rc = dsc_tokenizers_agree(a, name_a, b, name_b, err);
    for (dsc_field f = 0; f < DSC_FIELDS && !rc; f++) {
        unsigned in_a = dsc_field_kind(a, f), in_b = dsc_field_kind(b, f);
        if (in_a && in_b && in_a != in_b)
            rc = dsc_fail(err, DSC_EUSAGE, "%s has %s, but %s has %s", name_a,
                          dsc_field_name(f, in_a), name_b, dsc_field_name(f, in_b));
        else if (in_a != in_b && f != FIELD_ACCEPT)
            rc = dsc_fail(err, DSC_EUSAGE, "%s has %s, but %s does not", in_a ? name_a : name_b,
                          dsc_field_name(f, in_a + in_b), in_a ? name_b : name_a);
    }
    for (int p = 0; p < DSC_PARAMETERS && !rc; p++)
        if (dsc_parameter_needed(a, p) && dsc_parameter_value(a, p) != dsc_parameter_value(b, p))
            rc = dsc_fail(err, DSC_EUSAGE, "%s is %d in %s, but %d in %s", dsc_parameters[p].name,
                          (int)dsc_parameter_value(a, p), name_a, (int)dsc_parameter_value(b, p),
                          name_b);
    if (!rc)
        rc = drafters_agree(a, name_a, b, name_b, err);
    return rc ? rc : drafters_agree(b, name_b, a, name_a, err);
}

void dsc_recorded_intersect(dsc_trace_info *to, const dsc_trace_info *with)
{
    for (dsc_field f = 0; f < DSC_FIELDS; f++) {
        unsigned kind = dsc_field_kind(to, f), other = dsc_field_kind(with, f);
        if (f == FIELD_STEPS && kind && other)
            dsc_field_set(to, f, kind < other ? kind : other);
        else if (f != FIELD_ACCEPT && kind != other)
            dsc_field_set(to, f, 0);
    }
    if (!to->steps)
        to->has_step_drafted = to->has_step_draft_s = to->has_step_verify_s = false;
    for (dsc_field f = 0; f < DSC_FIELDS; f++)
        for (int p = 0; p < DSC_PARAMETERS; p++)
            if (dsc_field_has(f, p) && dsc_field_kind(to, f) &&
                dsc_parameter_value(to, p) != dsc_parameter_value(with, p))
                dsc_field_set(to, f, 0);
    int kept = 0;
    for (int i = 0; i < to->drafters; i++) {
        int other = dsc_drafter_number(with, to->drafter[i].name);
        if (other >= 0 && with->drafter[other].cap == to->drafter[i].cap)
            to->drafter[kept++] = to->drafter[i];
    }
    to->drafters = kept;
}
