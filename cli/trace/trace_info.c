// SPDX-License-Identifier: Apache-2.0
// draftscope trace info: prints requests, tokens, lengths, recorded columns, tokenizer and hashes
// of a trace, and the acceptance statistics of its recorded steps.
#include "base/columns.h"
#include "base/json_file.h"
#include "base/statistics.h"
#include "cli/trace/trace.h"
#include "cli/trace/trace_groups.h"
#include "traces/trace/trace_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BY };
// clang-format off
static const dsc_option options[] = {
    CLI_OPTION_BY,
    {.name = "json", .kind = DSC_OPTION_FLAG, .help = "print one JSON object"},
};
// clang-format on

enum { RECORDED = 64 }; // upper limit of the number of recorded columns

// Lengths of all requests, in tokens, and sizes of the recorded columns.
typedef struct lengths {
    double *prompt, *output, *reference; // [requests]; reference: sum over a request's references
    size_t n;
    int64_t turns; // number of references that are earlier turns
    int64_t empty; // number of requests without a prompt
    trace_groups groups;
    int64_t bytes[RECORDED]; // of the recorded columns, in the order of dsc_trace_recorded
    int64_t unknown;         // number of tensors of unknown name
} lengths;

static int collect(const dsc_trace *t, lengths *l, dsc_error *err)
{
    int rc = DSC_OK;
    for (int64_t s = 0; s < dsc_trace_shards(t) && !rc; s++) {
        dsc_shard *shard;
        rc = dsc_shard_open(&shard, t, s, err);
        for (int i = 0; !rc && dsc_trace_recorded(dsc_trace_get_info(t), i); i++)
            l->bytes[i] += dsc_shard_recorded_bytes(shard, i);
        l->unknown += rc ? 0 : dsc_shard_unknown(shard);
        for (int64_t i = 0; !rc && i < dsc_shard_requests(shard); i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            const bool text = dsc_trace_get_info(t)->has_text;
            l->empty += (text ? q.prompt_text.length : q.prompt.count) == 0;
            l->prompt[l->n] = (double)q.prompt.count;
            l->output[l->n] = (double)q.output.count;
            l->reference[l->n++] =
                (double)(q.reference_offset[q.references] - q.reference_offset[0]);
            rc = trace_groups_add(&l->groups, dsc_trace_get_info(t), &q, err);
            for (int64_t r = 0; r < q.references; r++)
                l->turns += q.reference_kind[r] == DSC_REFERENCE_TURN;
        }
        if (!rc)
            rc = dsc_shard_check(shard, err);
        dsc_shard_close(shard);
    }
    return rc;
}

static int measure(const dsc_trace *t, const char *by, lengths *l, dsc_error *err)
{
    double **array[] = {&l->prompt, &l->output, &l->reference};
    *l = (lengths){0};
    int rc = trace_groups_init(&l->groups, t, by, err);
    for (size_t a = 0; a < 3 && !rc; a++)
        rc = dsc_new(array[a], (size_t)dsc_trace_get_info(t)->requests, err);
    return rc ? rc : collect(t, l, err);
}

// Rounds a length to one decimal.
static json_t *rounded_or_null(double x)
{
    return isnan(x) ? json_null() : json_real(round(10 * x) / 10);
}

static void put_lengths(json_t *o, const char *what, double *x, size_t n)
{
    static const char *const part[] = {"mean", "median", "p90", "max"};
    dsc_summary s = dsc_summarize(x, n);
    const double value[] = {s.mean, s.median, s.p90, s.max};
    for (size_t i = 0; i < 4; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s_%s_tokens", part[i], what);
        json_object_set_new(o, key, rounded_or_null(value[i]));
    }
}

static int put_parameters(json_t *o, const char *parameters, dsc_error *err)
{
    json_t *value;
    int rc = dsc_json_parse(&value, parameters, strlen(parameters), 0, "parameters", err);
    if (!rc)
        json_object_set_new(o, "parameters", value);
    return rc;
}

static int put_provenance(json_t *o, const dsc_trace_info *info, dsc_error *err)
{
    json_t *value;
    int rc = dsc_trace_provenance(&value, info, err);
    if (!rc)
        json_object_set_new(o, "provenance", value ? value : json_object());
    return rc;
}

// All fields, in the order of printing. *out is the caller's, also on failure.
static int describe(json_t **out, const dsc_trace *t, lengths *l, const char *parameters,
                    dsc_error *err)
{
    const dsc_trace_info *i = dsc_trace_get_info(t);
    json_t *o = *out = json_object(), *recorded = json_array(), *bytes = json_object();
    json_object_set_new(o, "trace", json_string(dsc_trace_path(t)));
    json_object_set_new(o, "schema", json_integer(DSC_TRACE_SCHEMA));
    json_object_set_new(o, "format", json_string(i->format));
    json_object_set_new(o, "semantics", json_string(i->semantics));
    json_object_set_new(o, "tokenizer", json_string(i->tokenizer_name));
    json_object_set_new(o, "tokenizer_sha256", json_string(i->tokenizer_sha256));
    json_object_set_new(o, "vocab_size", json_integer(i->vocab_size));
    json_object_set_new(o, "eos_token",
                        i->eos_token < 0 ? json_null() : json_integer(i->eos_token));
    json_object_set_new(o, "recorded", recorded);
    json_object_set_new(o, "recorded_bytes", bytes);
    const char *name;
    for (int r = 0; (name = dsc_trace_recorded(i, r)); r++) {
        json_array_append_new(recorded, json_string(name));
        json_object_set_new(bytes, name, json_integer(l->bytes[r]));
    }
    int rc = put_parameters(o, parameters, err);
    json_object_set_new(o, "unknown_tensors", json_integer(l->unknown));
    json_object_set_new(o, "shards", json_integer(dsc_trace_shards(t)));
    json_object_set_new(o, "requests", json_integer(i->requests));
    json_object_set_new(o, "requests_without_prompt", json_integer(l->empty));
    json_object_set_new(o, "prompt_tokens", json_integer(i->prompt_tokens));
    json_object_set_new(o, "output_tokens", json_integer(i->output_tokens));
    json_object_set_new(o, "reference_tokens", json_integer(i->reference_tokens));
    json_object_set_new(o, "steps",
                        i->steps ? json_integer(l->groups.group->steps.steps) : json_null());
    json_object_set_new(o, "documents", json_integer(i->references - l->turns));
    json_object_set_new(o, "turns", json_integer(l->turns));
    put_lengths(o, "prompt", l->prompt, l->n);
    put_lengths(o, "output", l->output, l->n);
    put_lengths(o, "reference", l->reference, l->n);
    if (!rc)
        rc = trace_group_describe(l->groups.group, i, o, err);
    if (l->groups.by.field && !rc)
        rc = trace_groups_describe(&l->groups, i, o, err);
    json_object_set_new(o, "hash", json_string(i->hash));
    if (!rc)
        rc = put_provenance(o, i, err);
    return rc;
}

// Prints a line per group, without the fields that are lists.
static void print_groups(const json_t *groups)
{
    static const char *const column[] = {DSC_COL_REQUESTS,
                                         DSC_COL_OUTPUT_TOKENS,
                                         "steps",
                                         DSC_COL_BLOCK_EFFICIENCY,
                                         DSC_COL_MEAN_ACCEPTANCE_LENGTH,
                                         DSC_COL_DRAFT_ACCEPTANCE_RATE,
                                         DSC_COL_ALPHA_IID,
                                         "autocorrelation",
                                         "source_tokens_per_s"};
    const char *value;
    json_t *group;
    puts("groups");
    json_object_foreach((json_t *)groups, value, group)
    {
        printf("  %-22s", value);
        for (size_t c = 0; c < sizeof column / sizeof *column; c++) {
            const json_t *v = json_object_get(group, column[c]);
            if (json_is_number(v))
                printf("%s%s %.7g", c ? ", " : "", column[c], json_number_value(v));
        }
        putchar('\n');
    }
}

static void print_text(const json_t *o)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)o, key, v)
    {
        if (strcmp(key, "groups") == 0) {
            print_groups(v);
            continue;
        }
        printf("%-32s", key);
        if (json_is_string(v))
            puts(json_string_value(v));
        else if (json_is_integer(v))
            printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(v));
        else if (json_is_real(v))
            printf("%.7g\n", json_real_value(v));
        else if (json_is_null(v))
            puts("unknown");
        else {
            json_dumpf(v, stdout, JSON_COMPACT | JSON_REAL_PRECISION(7));
            putchar('\n');
        }
    }
}

static int print_info(const cli_call *call, dsc_error *err)
{
    const dsc_trace *t = call->trace;
    lengths l;
    char *parameters = NULL;
    int rc = measure(t, call->value[BY].text, &l, err);
    if (!rc)
        rc = dsc_trace_parameters(&parameters, dsc_trace_get_info(t), err);
    json_t *o = NULL;
    if (!rc)
        rc = describe(&o, t, &l, parameters, err);
    if (!rc && call->json) {
        json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
        putchar('\n');
    } else if (!rc) {
        print_text(o);
    }
    json_decref(o);
    free(parameters);
    trace_groups_fini(&l.groups);
    free(l.prompt);
    free(l.output);
    free(l.reference);
    return rc;
}

const cli_command cli_trace_info = {
    .name = "info",
    .summary = "print what a trace contains",
    CLI_OPTIONS(options),
    .usage = "trace info TRACE [--by FIELD] [--json]",
    .about =
        "Prints the contents of a trace: requests, tokens, lengths per request (including BOS "
        "and EOS tokens), recorded columns, tokenizer, hash and provenance; for recorded steps "
        "and accepted lengths also block efficiency, conditional acceptance rates by position "
        "and the autocorrelation between steps.",
    .opens_trace = true,
    .more_fields = cli_trace_info_fields,
    .structured = cli_trace_info_structured,
    .execute = print_info,
};
