// SPDX-License-Identifier: Apache-2.0
// What logs contain that weakens a verdict: texts with a part left out, empty prompts and outputs,
// requests that occur twice, outputs of several models.
#include "cli/advise/advise.h"
#include "traces/trace/trace_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct visit {
    cli_advise_facts *facts;
    char *model[CLI_ADVISE_MODELS];
    uint64_t *hash; // [requests] of prompt and output
} visit;

static int by_hash(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// FNV-1a over tokens.
static uint64_t add_tokens(uint64_t hash, dsc_token_view tokens)
{
    for (int64_t i = 0; i < tokens.count; i++)
        hash = (hash ^ (uint32_t)tokens.id[i]) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u;
}

static int read_metadata(visit *v, const dsc_request *q, dsc_error *err)
{
    json_t *metadata;
    int rc = dsc_request_metadata(&metadata, q, err);
    v->facts->arrivals += json_is_number(json_object_get(metadata, "arrival_s"));
    v->facts->lossy += json_object_get(metadata, "lossy") != NULL;
    const char *name = json_string_value(json_object_get(metadata, "model"));
    for (int64_t i = 0; name && i < v->facts->models; i++)
        name = strcmp(name, v->model[i]) ? name : NULL;
    if (name && v->facts->models < CLI_ADVISE_MODELS)
        rc = dsc_strndup(&v->model[v->facts->models++], name, strlen(name), err);
    json_decref(metadata);
    return rc;
}

static int look(void *context, const dsc_request *q, dsc_error *err)
{
    visit *v = context;
    v->hash[v->facts->requests++] =
        add_tokens(add_tokens(0xcbf29ce484222325u, q->prompt), q->output);
    // A single token is a BOS or EOS token that the tokenizer adds.
    v->facts->empty_prompts += q->prompt.count <= 1;
    v->facts->empty_outputs += q->output.count <= 1;
    if (q->prompt.count + q->output.count > v->facts->longest)
        v->facts->longest = q->prompt.count + q->output.count;
    return read_metadata(v, q, err);
}

int cli_advise_facts_of(cli_advise_facts *out, const dsc_trace *t, dsc_error *err)
{
    visit v = {.facts = out};
    *out = (cli_advise_facts){0};
    int rc = dsc_new(&v.hash, (size_t)dsc_trace_get_info(t)->requests, err);
    rc = rc ?: dsc_trace_each(t, look, &v, err);
    if (!rc && out->requests)
        qsort(v.hash, (size_t)out->requests, sizeof *v.hash, by_hash);
    for (int64_t i = 1; !rc && i < out->requests; i++)
        out->repeated += v.hash[i] == v.hash[i - 1];
    for (int64_t i = 0; i < out->models; i++)
        free(v.model[i]);
    free(v.hash);
    return rc;
}

void cli_advise_print_facts(const cli_advise_facts *f)
{
    if (f->lossy)
        printf("  %" PRId64 " of %" PRId64 " requests lack a part of what the model wrote or read "
               "(imported with --lossy), so the figures are of other texts.\n",
               f->lossy, f->requests);
    if (f->empty_prompts)
        printf("  %" PRId64 " of %" PRId64 " prompts are empty, so methods that copy from prompts "
               "look worse than they are%s.\n",
               f->empty_prompts, f->requests,
               f->empty_prompts == f->requests
                   ? "; --questions FILE adds those of specbench, mtbench and eagle logs"
                   : "");
    if (f->empty_outputs)
        printf("  %" PRId64 " of %" PRId64 " outputs are empty and count for nothing.\n",
               f->empty_outputs, f->requests);
    if (f->repeated)
        printf("  %" PRId64 " of %" PRId64 " requests repeat an earlier one, so the halves are not "
               "independent and the intervals are too narrow.\n",
               f->repeated, f->requests);
    if (f->models > 1)
        printf("  The outputs are of %" PRId64
               "%s models: a verdict for each needs its own logs.\n",
               f->models, f->models == CLI_ADVISE_MODELS ? " or more" : "");
}
