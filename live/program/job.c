// SPDX-License-Identifier: Apache-2.0
// Parses the options of a method on prompts and opens its models: the cheap checks first, then the
// weights.
#include "live/program/job.h"

#include "base/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const live_repeated[] = {"stop", NULL};

static int list_stops(live_job *job, const cli_call *call, dsc_error *err)
{
    int rc = dsc_new(&job->stop_text, call->uses.count + 1, err);
    for (size_t u = 0; u < call->uses.count && !rc; u++)
        if (!strcmp(call->uses.use[u].option->name, "stop"))
            job->stop_text[job->stop_texts++] = call->uses.use[u].text;
    return rc;
}

int live_job_begin(live_job *job, const cli_call *call, dsc_error *err)
{
    dsc_option_value parameter[DSC_MAX_PARAMETERS];
    const char *rule = cli_call_value(call, "rule")->text;
    job->model = call->more;
    job->greedy =
        call->more[LIVE_PAIR_TEMPERATURE].real == 0 || cli_call_value(call, "replay")->given;
    job->config.drafter = call->method[0];
    job->prompts.skip = cli_call_value(call, "skip")->integer;
    job->prompts.most = (size_t)cli_call_value(call, "requests")->integer;
    job->prompts.map = cli_call_value(call, "map")->text;
    job->prompts.chat_template = cli_call_value(call, "chat-template")->text;
    job->eos = cli_call_value(call, "eos")->text;
    memcpy(parameter, call->list[0], sizeof parameter);
    live_pair_default_tree(job->model, call->method[0], parameter);
    int rc = list_stops(job, call, err);
    if (!rc)
        rc = cli_config_fill(&job->config, parameter, err);
    if (!rc)
        job->rule =
            rule ? dsc_verifier_find(rule, err) : dsc_pair_rule(call->method[0], job->greedy);
    return rc || job->rule ? rc : DSC_EUSAGE;
}

// --- the end of an output ------------------------------------------------------------------------

// The EOS tokens of --eos, or of the target's configuration. Among several, that of the tokenizer's
// files is the one that an imported text would get.
static int read_ends(live_job *job, dsc_error *err)
{
    const live_pair *p = &job->pair;
    const live_config *c = &p->config[LIVE_TARGET];
    dsc_ends in_files = {.eos = -1};
    int rc;
    if (job->eos) {
        rc = dsc_ends_parse(&job->ends, p->tokenizer, c->vocab, job->eos, err);
        return rc ? dsc_error_prefix(err, rc, "--eos") : DSC_OK;
    }
    rc = p->tokenizer ? dsc_ends_read(&in_files, p->tokenizer, p->name[LIVE_TARGET].folder, err)
                      : DSC_OK;
    job->ends = (dsc_ends){.eos = c->ends ? c->end[0] : -1};
    for (int i = 0; i < c->ends && i < DSC_ENDS_MAX; i++)
        job->ends.id[job->ends.count++] = c->end[i];
    dsc_ends_prefer(&job->ends, in_files.eos);
    return rc;
}

int live_job_read(live_job *job, const live_want *want, dsc_error *err)
{
    int rc = live_pair_read(&job->pair, job->model, want, err);
    job->prompts.tokenizer = job->pair.tokenizer;
    job->prompts.tokenizer_spec = job->pair.tokenizer ? job->pair.name[LIVE_TARGET].folder : NULL;
    job->prompts.vocab = job->pair.config[LIVE_TARGET].vocab;
    if (!rc)
        rc = read_ends(job, err);
    if (!rc)
        rc = live_stop_init(&job->stop, job->pair.tokenizer, job->stop_text, job->stop_texts, err);
    job->run.stop = job->stop_texts ? &job->stop : NULL;
    return rc ? rc : live_pair_check_heads(&job->pair, &job->config, err);
}

// An answer to a chat ends with the token of its template, if that is one of several.
static void prefer_template_end(live_job *job)
{
    const char *end = job->prompts.reader ? dsc_prompt_reader_end(job->prompts.reader) : NULL;
    if (end && !job->eos)
        dsc_ends_prefer(&job->ends, dsc_tokenizer_find(job->pair.tokenizer, end));
}

// All models of the run end with the tokens of --eos.
static void put_ends(live_job *job)
{
    for (int s = 0; s < LIVE_SIDES && job->eos; s++) {
        if (!job->pair.weights[s])
            continue;
        live_config *c = &job->pair.weights[s]->config;
        c->ends = job->ends.count;
        memcpy(c->end, job->ends.id, (size_t)c->ends * sizeof *c->end);
    }
}

// --- sessions ------------------------------------------------------------------------------------

static void print_notes(const live_job *job)
{
    const live_prompts *p = &job->prompts;
    char note[DSC_IMPORT_NOTE];
    for (size_t i = 0; p->reader && dsc_prompt_reader_note(p->reader, i, note); i++)
        if (*note)
            fprintf(stderr, "draftscope: note: %s%s%s\n", p->source ? p->source : "",
                    p->source ? ": " : "", note);
}

static int check_lengths(const live_job *job, int64_t reserve, dsc_error *err)
{
    const int64_t room = live_pair_room(&job->pair, &job->config) - reserve;
    for (size_t i = 0; i < job->prompts.count; i++) {
        const live_prompt *p = &job->prompts.item[i];
        const int64_t recorded = p->request.output.count;
        const int64_t more = recorded ? recorded : job->run.max_tokens;
        char location[512];
        if (p->request.prompt.count + more <= room)
            continue;
        live_prompts_location(&job->prompts, i, location, sizeof location);
        return dsc_fail(err, p->line ? DSC_EINPUT : DSC_EUSAGE,
                        "%s: a prompt of %" PRId64 " tokens with %s %" PRId64
                        " exceeds the context of %" PRId64 " tokens",
                        location, p->request.prompt.count,
                        recorded ? "an output of" : "--max-tokens", more, room);
    }
    return DSC_OK;
}

int live_job_open(live_job *job, int64_t reserve, dsc_error *err)
{
    print_notes(job);
    prefer_template_end(job);
    int rc = check_lengths(job, reserve, err);
    if (!rc)
        rc = live_pair_open(&job->pair, err);
    if (!rc)
        put_ends(job);
    return rc ? rc
              : live_pair_sessions(&job->pair, &job->config,
                                   job->prompts.longest + job->run.max_tokens, err);
}

json_t *live_ends_json(const live_job *job)
{
    json_t *list = json_array();
    for (int i = 0; i < job->ends.count; i++)
        json_array_append_new(list, json_integer(job->ends.id[i]));
    return list;
}

json_t *live_stops_json(const live_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->stop_texts; i++)
        json_array_append_new(list, dsc_json_text(job->stop_text[i]));
    return list;
}

int live_job_failed(const live_job *job, size_t i, int rc, dsc_error *err)
{
    char location[512];
    live_prompts_location(&job->prompts, i, location, sizeof location);
    if (rc == DSC_ENOMEM)
        rc = err->status = DSC_EABSENT;
    return dsc_error_prefix(err, rc, "%s", location);
}

void live_job_fini(live_job *job)
{
    live_run_fini(&job->run);
    live_prompts_free(&job->prompts);
    live_pair_close(&job->pair);
    live_stop_fini(&job->stop);
    free(job->stop_text);
    dsc_config_fini(&job->config);
}
