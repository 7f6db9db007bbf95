// SPDX-License-Identifier: Apache-2.0
// Counts along an import, and the sentences about them (import_notes.h).
#include "traces/import/import_notes.h"

#include <string.h>

static void count_model(dsc_import_tally *t, const char *name)
{
    const size_t size = sizeof t->model->name; // names are cut to this many bytes
    int m = 0;
    name = name ? name : "no model";
    while (m < t->models && strncmp(t->model[m].name, name, size - 1) != 0)
        m++;
    if (m == DSC_IMPORT_MODELS)
        m--;
    else if (m == t->models)
        snprintf(t->model[t->models++].name, size, "%s", name);
    t->model[m].requests++;
}

static bool is_empty(const dsc_import_text *t)
{
    return t->text.bytes ? t->text.length == 0 : t->tokens.count == 0;
}

void dsc_import_tally_add(dsc_import_tally *t, const dsc_import_record *r)
{
    const int64_t tokens = (int64_t)r->output.tokens.count;
    t->requests++;
    t->no_prompt += is_empty(&r->prompt);
    if (r->model)
        count_model(t, r->model);
    t->lossy += r->is_lossy;
    t->no_tools += r->tools_left_out;
    t->unanswered += r->is_unanswered;
    t->steps_added += r->steps_added;
    t->steps_added_in += r->steps_added > 0;
    t->eos_appended += r->eos_appended;
    t->steps_unknown += r->steps_unknown;
    t->steps_unknown_in += r->steps_unknown > 0;
    if (r->recorded_tokens < 0)
        return;
    t->counted++;
    t->recorded_tokens += r->recorded_tokens;
    t->trace_tokens += tokens;
    t->other_count += tokens != r->recorded_tokens;
    t->recorded_s += r->recorded_s;
}

bool dsc_import_tally_skips(dsc_import_tally *t, const dsc_import_record *r)
{
    if (!r->other_model)
        return false;
    t->other_model++;
    count_model(t, r->model);
    return true;
}

// --- notes -------------------------------------------------------------------------------------

static void note_counts(const dsc_import_tally *t, char *note, size_t size)
{
    char speed[64] = "";
    if (t->other_count == 0 && t->recorded_s == 0)
        return;
    if (t->recorded_s > 0)
        snprintf(speed, sizeof speed, " in %.1f s (%.1f tokens/s)", t->recorded_s,
                 (double)t->recorded_tokens / t->recorded_s);
    int n = snprintf(note, size, "the source counted %lld output tokens%s",
                     (long long)t->recorded_tokens, speed);
    if (t->other_count)
        snprintf(note + n, size - (size_t)n,
                 "; the texts have %lld, and the counts differ in %lld of %lld requests",
                 (long long)t->trace_tokens, (long long)t->other_count, (long long)t->counted);
}

static void note_uncounted(const dsc_import_tally *t, char *note, size_t size)
{
    if (t->counted && t->counted < t->requests)
        snprintf(note, size,
                 "%lld of %lld answers have no count of tokens, so that nothing tells whether "
                 "their texts are whole",
                 (long long)(t->requests - t->counted), (long long)t->requests);
}

static void note_lossy(const dsc_import_tally *t, char *note, size_t size)
{
    if (t->lossy)
        snprintf(note, size,
                 "warning: %lld of %lld requests lack a part of what the source has (--lossy): the "
                 "trace is not what the model wrote",
                 (long long)t->lossy, (long long)t->requests);
}

static void note_tools(const dsc_import_tally *t, char *note, size_t size)
{
    if (t->no_tools)
        snprintf(note, size,
                 "the prompts of %lld requests lack the definitions of their tools, which the chat "
                 "template has in a form that is not known",
                 (long long)t->no_tools);
}

static void note_unanswered(const dsc_import_tally *t, char *note, size_t size)
{
    if (t->unanswered)
        snprintf(note, size,
                 "%lld chats end with a message that no answer follows; it was left out",
                 (long long)t->unanswered);
}

static void note_prompts(const dsc_import_tally *t, char *note, size_t size)
{
    if (t->no_prompt)
        snprintf(note, size,
                 "warning: %lld of %lld requests have no prompt; methods that copy from it (ngram, "
                 "suffix, llma) look worse than they are",
                 (long long)t->no_prompt, (long long)t->requests);
}

static void list_models(const dsc_import_tally *t, char *out, size_t size)
{
    size_t n = 0;
    *out = '\0';
    for (int m = 0; m < t->models && n < size; m++)
        n += (size_t)snprintf(out + n, size - n, "%s%s (%lld)", m ? ", " : "", t->model[m].name,
                              (long long)t->model[m].requests);
}

static void note_models(const dsc_import_tally *t, char *note, size_t size)
{
    char names[360];
    list_models(t, names, sizeof names);
    if (t->wanted && t->other_model)
        snprintf(note, size, "%lld requests of other models were left out",
                 (long long)t->other_model);
    else if (t->models > 1)
        snprintf(note, size, "the requests are of %s%d models, %s; --model NAME selects one",
                 t->models == DSC_IMPORT_MODELS ? "at least " : "", t->models, names);
}

static void note_failed(const dsc_import_tally *t, char *note, size_t size)
{
    if (t->failed)
        snprintf(note, size, "%lld requests that had failed were left out", (long long)t->failed);
}

static void note_steps(const dsc_import_tally *t, char *note, size_t size)
{
    int n = 0;
    if (t->steps_added)
        n = snprintf(note, size,
                     "the metrics leave out steps without a draft: %lld were added to %lld "
                     "requests, after the others, as their places are unknown",
                     (long long)t->steps_added, (long long)t->steps_added_in);
    if (t->steps_unknown)
        snprintf(note + n, size - (size_t)n,
                 "%s up to %lld steps without a draft may be missing in %lld requests, whose last "
                 "step may have been cut",
                 n ? ";" : "the metrics leave out steps without a draft:",
                 (long long)t->steps_unknown, (long long)t->steps_unknown_in);
}

static void note_eos(const dsc_import_tally *t, char *note, size_t size)
{
    if (t->eos_guess && t->eos_appended)
        snprintf(
            note, size,
            "outputs end with %.60s, the first of the usual EOS tokens that the tokenizer has; "
            "no generation_config.json is next to it (--eos names the token)",
            t->eos_guess);
}

bool dsc_import_tally_note(const dsc_import_tally *t, int kind, char note[DSC_IMPORT_NOTE])
{
    static void (*const notes[])(const dsc_import_tally *, char *, size_t) = {
        note_counts,  note_uncounted, note_lossy,  note_tools, note_unanswered,
        note_prompts, note_models,    note_failed, note_steps, note_eos};
    *note = '\0';
    if (kind < 0 || (size_t)kind >= sizeof notes / sizeof *notes)
        return false;
    notes[kind](t, note, DSC_IMPORT_NOTE);
    return true;
}

int dsc_import_tally_empty(const dsc_import_tally *t, dsc_error *err)
{
    char names[360];
    list_models(t, names, sizeof names);
    if (t->other_model)
        return dsc_fail(err, DSC_EINPUT, "no requests of model '%.100s'; the models are %s",
                        t->wanted, names);
    if (t->failed)
        return dsc_fail(err, DSC_EINPUT, "no requests: all %lld had failed", (long long)t->failed);
    return dsc_fail(err, DSC_EINPUT, "no requests: the input is empty");
}
