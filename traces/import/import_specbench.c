// SPDX-License-Identifier: Apache-2.0
// Reads Spec-Bench's answers (github.com/hemingkx/Spec-Bench; import_answers.h), whose choices[0]
// has
//   "decoding_steps": [S, ...]     steps of each turn
//   "accept_lengths": [A, ...]     tokens that each step wrote, over all turns, bonus INCLUDED
// so that a step accepted A - 1 draft tokens. Every line is checked: a turn has one accept length
// per step, and they add up to its new tokens.
//
// The file does not store draft lengths. With the rule of Hugging Face's assisted generation, which
// Spec-Bench's SpS runs, they follow from the accepted tokens: a turn begins with 5; the next draft
// has 2 tokens more after a draft that was accepted whole, else 1 less, but at least 1. The rule is
// applied only if no step of the whole input accepted more tokens than it drafts, and if at least
// one draft was accepted whole; otherwise there is no evidence for it. Check: eagle.jsonl has block
// efficiency 3.579, sps-68m.jsonl 2.502 (without the rule, which 513 of its 560 turns violate),
// vanilla.jsonl 1.
#include "traces/import/import_answers.h"

#include "traces/trace/trace_columns.h"

#include <string.h>

enum { FIRST_DRAFT = 5, LONGER = 2, DRAFT_MAX = UINT16_MAX };

static int probe(const json_t *line)
{
    const json_t *choice = json_array_get(json_object_get(line, "choices"), 0);
    return 2 * (json_object_get(line, "question_id") != NULL) +
           2 * (json_object_get(choice, "turns") != NULL) +
           2 * (json_object_get(choice, "accept_lengths") != NULL);
}

// Checks that the steps of turn `turn`, which begin at *first, write its new tokens. Advances
// *first to the next turn.
static int check_turn(const dsc_answer *a, const json_t *lengths, size_t turn, size_t *first,
                      dsc_error *err)
{
    int64_t steps, tokens = 0;
    int rc = dsc_answer_count(a, "decoding_steps", turn, &steps, err);
    if (!rc && (size_t)steps > json_array_size(lengths) - *first)
        rc = dsc_fail(err, DSC_EINPUT,
                      "field 'choices[0].accept_lengths' has %zu elements, but there are more "
                      "decoding steps",
                      json_array_size(lengths));
    for (size_t i = 0; !rc && i < (size_t)steps; i++) {
        int64_t accepted = 0;
        rc = dsc_import_accepted(&accepted, lengths, *first + i, "choices[0].accept_lengths", err);
        if (!rc)
            tokens += accepted + 1;
    }
    if (!rc && tokens != a->turn_tokens[turn])
        rc = dsc_fail(err, DSC_EINPUT,
                      "the accept lengths of turn %zu add up to %lld, but it has %lld new tokens",
                      turn, (long long)tokens, (long long)a->turn_tokens[turn]);
    if (!rc)
        *first += (size_t)steps;
    return rc;
}

// Reads and checks a whole line. *lengths is its accept_lengths.
static int read_answer(dsc_answer *a, const json_t **lengths, const json_t *line, dsc_error *err)
{
    size_t steps = 0;
    int rc = dsc_answer_read(a, line, err);
    if (rc)
        return rc;
    *lengths = json_object_get(a->choice, "accept_lengths");
    if (!json_is_array(*lengths))
        return dsc_import_wrong_type(*lengths, "an array", err, "choices[0].accept_lengths");
    rc = dsc_answer_check_field(a, "decoding_steps", err);
    for (size_t t = 0; t < a->turns && !rc; t++)
        rc = check_turn(a, *lengths, t, &steps, err);
    if (!rc && steps != json_array_size(*lengths))
        rc = dsc_fail(
            err, DSC_EINPUT,
            "field 'choices[0].accept_lengths' has %zu elements, but there are %zu decoding "
            "steps",
            json_array_size(*lengths), steps);
    return rc;
}

// --- the rule ----------------------------------------------------------------------------------

static int64_t next_draft(int64_t drafted, int64_t accepted)
{
    if (accepted == drafted)
        return drafted + LONGER;
    return drafted > 1 ? drafted - 1 : 1;
}

// How well the rule fits the turns so far.
typedef struct fit {
    int64_t turns, broken; // turns, and those with a step that accepted more than the rule drafts
    int64_t whole;         // drafts that were accepted whole
} fit;

static void fit_turns(fit *f, const dsc_answer *a, const json_t *lengths)
{
    size_t i = 0;
    for (size_t t = 0; t < a->turns; t++) {
        int64_t drafted = FIRST_DRAFT, steps = 0;
        bool broken = false;
        (void)dsc_answer_count(a, "decoding_steps", t, &steps, NULL); // was checked
        for (int64_t s = 0; s < steps; s++, i++) {
            int64_t accepted = json_integer_value(json_array_get(lengths, i)) - 1;
            broken = broken || accepted > drafted;
            f->whole += !broken && accepted == drafted;
            drafted = next_draft(drafted, accepted);
        }
        f->turns++;
        f->broken += broken;
    }
}

static void fit_line(void *state, const json_t *line)
{
    dsc_answer a;
    const json_t *lengths;
    if (read_answer(&a, &lengths, line, NULL) == DSC_OK)
        fit_turns(state, &a, lengths);
}

static void write_note(const fit *f, bool fitted, bool by_rule, char note[DSC_IMPORT_NOTE])
{
    static const char rule[] = "Hugging Face's rule (5 at first, +2 after a draft accepted whole, "
                               "else -1, at least 1)";
    if (!fitted)
        snprintf(
            note, DSC_IMPORT_NOTE,
            "draft lengths are unknown: %s was not tested, because the input can be read only once",
            rule);
    else if (by_rule)
        snprintf(
            note, DSC_IMPORT_NOTE,
            "draft lengths are not stored; they were reconstructed by %s, which fits every step "
            "of all %lld turns",
            rule, (long long)f->turns);
    else if (f->broken)
        snprintf(note, DSC_IMPORT_NOTE,
                 "draft lengths are unknown: they are not stored, and %s does not fit %lld of %lld "
                 "turns",
                 rule, (long long)f->broken, (long long)f->turns);
    else
        snprintf(note, DSC_IMPORT_NOTE,
                 "draft lengths are unknown: they are not stored, and by %s no draft was accepted "
                 "whole",
                 rule);
}

// *state is whether draft lengths follow the rule in the whole input.
static int prepare(void **state, const char *const *paths, size_t count, char note[DSC_IMPORT_NOTE],
                   dsc_error *err)
{
    bool *by_rule, fitted = true;
    fit f = {0};
    int rc = dsc_new(&by_rule, 1, err);
    *state = by_rule;
    for (size_t i = 0; i < count && !rc && fitted; i++) {
        fitted = dsc_import_rereadable(paths[i]);
        if (fitted)
            rc = dsc_import_scan(paths[i], fit_line, &f, err);
    }
    if (rc)
        return rc;
    *by_rule = fitted && f.broken == 0 && f.whole > 0;
    write_note(&f, fitted, *by_rule, note);
    return DSC_OK;
}

// --- a line ------------------------------------------------------------------------------------

static int fill_steps(dsc_import_record *record, const dsc_answer *a, const json_t *lengths,
                      bool by_rule, dsc_error *err)
{
    size_t steps = json_array_size(lengths), i = 0;
    void *accepted, *drafted = NULL;
    int rc = dsc_import_column_start(record, COL_STEP_ACCEPTED, steps, &accepted, err);
    if (!rc && by_rule)
        rc = dsc_import_column_start(record, COL_STEP_DRAFTED, steps, &drafted, err);
    if (rc)
        return rc;
    record->recorded.steps = DSC_STEPS_LOGGED;
    for (size_t t = 0; t < a->turns; t++) {
        int64_t draft = FIRST_DRAFT, count = 0;
        (void)dsc_answer_count(a, "decoding_steps", t, &count, NULL); // was checked
        for (int64_t s = 0; s < count; s++, i++) {
            int64_t n = json_integer_value(json_array_get(lengths, i)) - 1;
            ((uint16_t *)accepted)[i] = (uint16_t)n;
            if (drafted)
                ((uint16_t *)drafted)[i] = (uint16_t)(draft < DRAFT_MAX ? draft : DRAFT_MAX);
            draft = next_draft(draft, n);
        }
    }
    return DSC_OK;
}

static int read_line(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                     dsc_error *err)
{
    static const char *const fields[] = {"decoding_steps", "new_tokens", "wall_time", NULL};
    const bool *by_rule = options->prepared;
    const json_t *lengths = NULL;
    dsc_answer a;
    int rc = read_answer(&a, &lengths, line, err);
    if (!rc)
        rc = dsc_answer_fill(out, line, &a, options->asked, fields, err);
    if (!rc)
        rc = fill_steps(out, &a, lengths, *by_rule, err);
    return rc;
}

const dsc_import_driver dsc_import_specbench = {
    .name = "specbench",
    .summary = "Spec-Bench's answers: turns, decoding_steps, accept_lengths (--questions FILE)",
    .needs = "question_id choices",
    .probe = probe,
    .read = read_line,
    .prepare = prepare,
    .wants_questions = true,
};
