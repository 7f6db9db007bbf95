// SPDX-License-Identifier: Apache-2.0
// Import of the formats other programs write: what each becomes, what contradicts itself, and
// documents instead of lines. The inputs are in tests/data/import; with the bytes tokenizer their
// characters are their tokens.
#include "tests/unit/import_fixture.h"

#include "tests/close.h"
#include "theory/block.h"
#include "traces/import/totals.h"

static char path[4][512]; // of data files

static const char *data(int i, const char *name)
{
    char inside[128];
    snprintf(inside, sizeof inside, "tests/data/import/%s", name);
    return source_path(inside, path[i], sizeof path[i]);
}

static const char *semantics; // of the next imports

// Opens what a data file becomes. `questions`: also a data file, or NULL.
static opened import_data(const char *name, const char *format, const char *questions)
{
    const char *paths[] = {data(0, name)};
    dsc_import_options o = plain;
    dsc_error err;
    o.format = format;
    o.semantics = semantics;
    o.note = keep_note;
    o.questions = questions ? data(1, questions) : NULL;
    notes[0] = '\0';
    if (dsc_import(paths, 1, bytes, out_path, &o, NULL, &err))
        fail_msg("%s", err.message);
    return open_trace(out_path);
}

static void expect_counts(const uint16_t *is, int64_t count, const int *wanted)
{
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(is[i], wanted[i]);
}

static void expect_steps(const dsc_steps *s, int64_t count, const int *accepted, const int *drafted)
{
    assert_int_equal(s->count, count);
    expect_counts(s->accepted, count, accepted);
    assert_int_equal(s->drafted != NULL, drafted != NULL);
    if (drafted)
        expect_counts(s->drafted, count, drafted);
    assert_null(s->draft_s);
    assert_null(s->verify_s);
}

// --- answers -----------------------------------------------------------------------------------

// A question of two turns is one request; each turn ends by its count.
static void test_specbench(void **state)
{
    (void)state;
    opened o = import_data("specbench.jsonl", NULL, "questions.jsonl");
    assert_string_equal(o.info->format, "specbench");
    assert_int_equal(o.info->steps, DSC_STEPS_LOGGED);
    dsc_request q = request(&o, 0);
    expect_text(q.id, "x-7");
    expect_text(q.prompt_text, "What is two and two?");
    expect_tokens(q.output, "four$");
    expect_steps(&q.steps, 2, (int[]){3, 0}, NULL);
    q = request(&o, 1);
    expect_text(q.id, "81");
    expect_text(q.prompt_text, "Say hi.\nAgain, louder.");
    expect_text(q.output_text, "hi there\nHI THERE");
    expect_tokens(q.output, "hi there$HI THERE");
    expect_steps(&q.steps, 5, (int[]){0, 7, 1, 0, 4}, NULL);
    expect_text(q.metadata, "{\"question_id\":81,\"category\":\"writing\",\"model_id\":\"m\","
                            "\"decoding_steps\":[2,3],\"new_tokens\":[9,8],\"wall_time\":[1.5,2]}");
    expect_note("draft lengths are unknown");
    expect_note("does not fit 2 of 3 turns");
    expect_note("22 output tokens in 4.0 s (5.5 tokens/s)\n");
    close_trace(&o);
    o = import_data("specbench.jsonl", NULL, NULL);
    q = request(&o, 1);
    expect_tokens(q.prompt, "^");
    close_trace(&o);
}

static void test_specbench_rule(void **state)
{
    (void)state;
    opened o = import_data("specbench_rule.jsonl", NULL, "questions.jsonl");
    assert_true(o.info->has_step_drafted);
    dsc_request q = request(&o, 0);
    expect_steps(&q.steps, 2, (int[]){3, 0}, (int[]){5, 4});
    q = request(&o, 1);
    expect_steps(&q.steps, 5, (int[]){5, 1, 0, 2, 4}, (int[]){5, 7, 6, 5, 4});
    expect_note("which fits every step of all 3 turns");
    close_trace(&o);
}

#define ANSWER(turns, choice)                                                                      \
    "{\"question_id\": 1, \"choices\": [{\"turns\": [" turns "], " choice "}]}\n"
#define BENCH(tokens, steps, lengths)                                                              \
    "\"new_tokens\": [" tokens "], \"decoding_steps\": [" steps "], \"accept_lengths\": [" lengths \
    "]"

// A run without drafts fits the rule in every step, and still nothing was drafted; a text that the
// tokenizer splits otherwise keeps its tokens.
static void test_specbench_doubt(void **state)
{
    (void)state;
    dsc_import_options options = plain;
    options.note = keep_note;
    notes[0] = '\0';
    opened o = import_good(ANSWER("\"abcd\"", BENCH("3", "3", "1, 1, 1")), &options);
    dsc_request q = request(&o, 0);
    assert_false(o.info->has_step_drafted);
    expect_steps(&q.steps, 3, (int[]){0, 0, 0}, NULL);
    expect_tokens(q.output, "abcd");
    expect_note("no draft was accepted whole");
    expect_note(
        "counted 3 output tokens; the texts have 4, and the counts differ in 1 of 1 requests");
    assert_non_null(strstr(o.info->provenance, "the counts differ in 1 of 1 requests"));
    close_trace(&o);
}

static void test_mtbench(void **state)
{
    (void)state;
    static const char *const formats[] = {NULL, "eagle"};
    for (int f = 0; f < 2; f++) {
        opened o = import_data("mtbench.jsonl", formats[f], "questions.jsonl");
        assert_string_equal(o.info->format, f ? "eagle" : "mtbench");
        assert_int_equal(o.info->steps, DSC_STEPS_NONE);
        dsc_request q = request(&o, 0);
        expect_tokens(q.output, "hi$HI");
        expect_text(q.metadata, "{\"question_id\":81,\"model_id\":\"eagle\",\"idxs\":[1,0],"
                                "\"new_tokens\":[3,2],\"wall_time\":[0.25,0.25]}");
        q = request(&o, 1);
        expect_tokens(q.output, "fo");
        close_trace(&o);
    }
}

// The published runs: every figure that their steps must give (Spec-Bench, Vicuna-7B, greedy). The
// conditional acceptance rate at depth d is taken over steps that accepted d - 1 tokens; the lag-1
// autocorrelation is Pearson's over the pairs of steps that follow each other in a request.
typedef struct run_figures {
    const char *file;
    int64_t steps, tokens;
    double tokens_per_s, conditional_rate[5], autocorrelation;
} run_figures;

static double pearson(double n, double x, double y, double xx, double yy, double xy)
{
    return (xy - x * y / n) / sqrt((xx - x * x / n) * (yy - y * y / n));
}

static void check_run(const opened *o, const run_figures *wanted)
{
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0, at_least[7] = {0};
    int64_t steps = 0, tokens = 0;
    for (int64_t i = 0; i < o->info->requests; i++) {
        dsc_request q = request(o, i);
        for (int64_t s = 0; s < q.steps.count; s++) {
            double a = q.steps.accepted[s], b = s + 1 < q.steps.count ? q.steps.accepted[s + 1] : 0;
            steps++;
            tokens += q.steps.accepted[s] + 1;
            for (int d = 0; d < 7 && d <= q.steps.accepted[s]; d++)
                at_least[d]++;
            if (s + 1 == q.steps.count)
                continue;
            n++, x += a, y += b, xx += a * a, yy += b * b, xy += a * b;
        }
    }
    assert_int_equal(steps, wanted->steps);
    assert_int_equal(tokens, wanted->tokens);
    for (int d = 0; d < 5 && wanted->conditional_rate[d] != 0; d++)
        assert_close(at_least[d + 1] / at_least[d], wanted->conditional_rate[d], 5e-4);
    if (wanted->autocorrelation != 0)
        assert_close(pearson(n, x, y, xx, yy, xy), wanted->autocorrelation, 5e-4);
}

static void test_specbench_runs(void **state)
{
    (void)state;
    static const run_figures runs[] = {
        {"specbench/eagle.jsonl", 25525, 91342, 125.0, {.897, .803, .725, .517, .625}, .238},
        {"specbench/sps-68m.jsonl", 36581, 91541, 83.8, {0}, 0},
        {"specbench/vanilla.jsonl", 91878, 91878, 51.4, {0}, 0},
    };
    dsc_tokenizer *llama;
    dsc_error err;
    char tokenizer[512], answers[512], questions[512], note[64];
    data_path("tokenizers/llama2.json", tokenizer, sizeof tokenizer);
    data_path("specbench/questions.jsonl", questions, sizeof questions);
    assert_ok(dsc_tokenizer_load(&llama, tokenizer, &err), err);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const char *paths[] = {data_path(runs[i].file, answers, sizeof answers)};
        dsc_import_options options = plain;
        options.questions = questions;
        options.note = keep_note;
        notes[0] = '\0';
        assert_ok(dsc_import(paths, 1, llama, out_path, &options, NULL, &err), err);
        opened o = open_trace(out_path);
        assert_int_equal(o.info->requests, 480);
        assert_false(o.info->has_step_drafted);
        expect_note("draft lengths are unknown");
        snprintf(note, sizeof note, "(%.1f tokens/s)", runs[i].tokens_per_s);
        expect_note(note);
        check_run(&o, &runs[i]);
        close_trace(&o);
    }
    dsc_tokenizer_free(llama);
}

// --- the others --------------------------------------------------------------------------------

static void test_alpaca(void **state)
{
    (void)state;
    opened o = import_data("alpaca.json", NULL, NULL);
    assert_string_equal(o.info->format, "alpaca");
    assert_int_equal(o.info->requests, 2);
    dsc_request q = request(&o, 0);
    expect_text(q.prompt_text, "Name a colour.");
    expect_tokens(q.output, "Red, [not] {blue}\n$");
    expect_text(q.metadata, "{\"generator\":\"model-a\",\"dataset\":\"helpful_base\"}");
    q = request(&o, 1);
    expect_text(q.prompt_text, "Add.\n1 2");
    close_trace(&o);
}

static void test_acclen(void **state)
{
    (void)state;
    opened o = import_data("acclen.jsonl", NULL, NULL);
    assert_string_equal(o.info->format, "acclen");
    assert_int_equal(o.info->drafters, 2);
    assert_string_equal(o.info->drafter[0].name, "eagle");
    assert_int_equal(o.info->drafter[0].cap, 5);
    assert_string_equal(o.info->drafter[1].name, "ngram");
    assert_int_equal(o.info->drafter[1].cap, 1);
    dsc_request q = request(&o, 0);
    expect_text(q.id, "r0");
    expect_counts(q.accept[0], 3, (int[]){2, 0, 0});
    expect_counts(q.accept[1], 3, (int[]){0, 0, 0});
    q = request(&o, 1);
    expect_counts(q.accept[0], 1, (int[]){5});
    expect_counts(q.accept[1], 1, (int[]){1});
    expect_text(q.metadata, "{\"lists\":\"equal\"}");
    expect_note("the cap of a drafter is its largest");
    close_trace(&o);
}

// Lists that are shorter and longer than the output, and both places of an element: its own, and
// the one that SpecDecode-Bench's reader gives it.
static void test_acclen_lists(void **state)
{
    (void)state;
    static const int lengths[2][2][4] = {{{0, 3, 0, 2}, {0, 0, 1, 0}},
                                         {{0, 0, 3, 0}, {0, 0, 0, 1}}};
    for (int code = 0; code < 2; code++) {
        semantics = code ? "code" : "paper";
        opened o = import_data("acclen_lists.jsonl", NULL, NULL);
        semantics = NULL;
        assert_string_equal(o.info->drafter[0].name, "a");
        assert_string_equal(o.info->drafter[1].name, "acc");
        dsc_request q = request(&o, 0); // "acc" is one token shorter, "a" one longer
        assert_int_equal(q.output.count, 4);
        expect_counts(q.accept[0], 4, lengths[code][0]);
        expect_counts(q.accept[1], 4, lengths[code][1]);
        expect_text(q.metadata, "{\"lists\":\"differ\"}");
        q = request(&o, 1);
        assert_int_equal(q.output.count, 2);
        expect_text(q.metadata, "{\"lists\":\"equal\"}");
        expect_note("in 1 of 2 requests a list is not as long as the output");
        expect_note("(1 tokens less), 1 lengths after the outputs");
        close_trace(&o);
    }
}

static void test_vllm(void **state)
{
    (void)state;
    static const float logp[] = {-0.5f, -0.25f, 0, -1, -2, -0.125f};
    opened o = import_data("vllm.json", NULL, NULL);
    assert_string_equal(o.info->format, "vllm");
    assert_int_equal(o.info->steps, DSC_STEPS_LOGGED);
    dsc_request q = request(&o, 0);
    expect_text(q.id, "cmpl-1");
    expect_tokens(q.prompt, "xy");
    expect_tokens(q.output, "abcdef");
    assert_memory_equal(q.target_logp, logp, sizeof logp);
    expect_steps(&q.steps, 3, (int[]){1, 0, 2}, (int[]){3, 1, 2});
    assert_null(strstr(q.metadata.bytes, "per_step"));
    close_trace(&o);
    o = import_data("vllm_text.jsonl", NULL, NULL);
    q = request(&o, 0);
    expect_tokens(q.prompt, "");
    expect_tokens(q.output, "ok$");
    assert_int_equal(o.info->steps, DSC_STEPS_NONE);
    q = request(&o, 1);
    expect_tokens(q.output, "no");
    close_trace(&o);
}

// --- bad lines ---------------------------------------------------------------------------------

#define IDS "\"prompt_token_ids\": [1], \"generated_token_ids\": [2, 3]"
#define VLLM(metrics)                                                                              \
    "{\"choices\": [{\"text\": \"abc\"}], \"usage\": {\"completion_tokens\": 3}, "                 \
    "\"metrics\": {\"speculative_decoding\": {" metrics "}}}"

static const struct {
    const char *format, *line, *message; // after "FILE:1:"
} bad_lines[] = {
    {"specbench", "3", " the line must be an object, not a number"},
    {"specbench", "{\"question_id\": 1}", " field 'choices' is missing"},
    {"specbench", "{\"choices\": [1, 2]}", " field 'choices' has 2 elements; it must have one"},
    {"specbench", "{\"choices\": [{\"turns\": \"t\"}]}", "'choices[0].turns' must be an array"},
    {"specbench", ANSWER("", BENCH("", "", "")),
     "'choices[0].turns' has 0 elements; it must have 1 to 1024"},
    {"specbench", ANSWER("\"a\"", "\"x\": 1"), " field 'choices[0].new_tokens' is missing"},
    {"specbench", ANSWER("\"a\"", BENCH("1, 2", "1", "1")),
     "'choices[0].new_tokens' has 2 elements, but there are 1 turns"},
    {"specbench", ANSWER("\"a\"", BENCH("-1", "1", "1")), "new_tokens[0]' is -1"},
    {"specbench", ANSWER("\"a\"", BENCH("1", "1", "0")),
     "accept_lengths[0]' is 0; with the bonus token it must be 1 to 65536"},
    {"specbench", ANSWER("\"a\"", BENCH("1", "1", "1.0")), "accept_lengths[0]' must be an integer"},
    {"specbench", ANSWER("\"a\"", BENCH("1", "2", "1")), "there are more decoding steps"},
    {"specbench", ANSWER("\"a\"", BENCH("1", "1", "1, 1")),
     "'choices[0].accept_lengths' has 2 elements, but there are 1 decoding steps"},
    {"specbench", ANSWER("\"a\", \"b\"", BENCH("3, 2", "1, 1", "2, 3")),
     " the accept lengths of turn 0 add up to 2, but it has 3 new tokens"},
    {"specbench", ANSWER("\"a\"", BENCH("1", "1", "1") ", \"wall_time\": [-1]"),
     "wall_time[0]' must be a number of seconds"},
    {"specbench", ANSWER("7", BENCH("1", "1", "1")), " field 'choices[0].turns[0]' must be a str"},
    {"mtbench", ANSWER("\"a\"", "\"new_tokens\": [1], \"idxs\": []"), "'choices[0].idxs' has 0"},
    {"mtbench", ANSWER("\"a\"", "\"new_tokens\": [1], \"idxs\": [2]"),
     " field 'choices[0].idxs': turn 0 has 3 steps, but only 1 new tokens"},
    {"alpaca", "{\"instruction\": \"i\"}", " field 'output' is missing"},
    {"alpaca", "{\"instruction\": \"i\", \"input\": 1, \"output\": \"o\"}", " field 'input' must"},
    {"alpaca", "[7]", " the line must be an object, not a number"},
    {"acclen", "{" IDS "}", " a field 'acc_NAME' with accept lengths 'acc_len' is missing"},
    {"acclen", "{" IDS ", \"acc_a\": {\"acc_len\": []}}",
     " a list of accept lengths is empty, but the output has 2 tokens"},
    {"acclen", "{" IDS ", \"acc_a\": {\"acc_len\": {}}}", "'acc_a.acc_len' must be an array"},
    {"acclen", "{" IDS ", \"acc_a\": {\"acc_len\": [1, 0]}}", "'acc_a.acc_len[1]' is 0; with the"},
    {"acclen", "{\"prompt_token_ids\": [258]}", " field 'prompt_token_ids[0]' is 258; token ids"},
    {"vllm", "{\"choices\": []}", "'choices' has 0 elements; it must have at least one"},
    {"vllm", "{\"choices\": [{}]}", " field 'choices[0].text' is missing"},
    {"vllm", "{\"choices\": [{\"token_ids\": [1, 2]}], \"usage\": {\"completion_tokens\": 3}}",
     " field 'choices[0].token_ids' has 2 ids, but usage.completion_tokens is 3"},
    {"vllm", "{\"choices\": [{\"token_ids\": [1], \"logprobs\": {\"token_logprobs\": [0.5]}}]}",
     " field 'choices[0].logprobs': element 0 must be a finite number, at most 0"},
    {"vllm", VLLM("\"per_step_accepted\": [1]"),
     " metrics.speculative_decoding: fields 'per_step_"},
    {"vllm", VLLM("\"per_step_accepted\": [3], \"per_step_drafted\": [2]"),
     " step 0 accepted 3 tokens, but drafted only 2"},
    {"vllm", VLLM("\"per_step_accepted\": [1], \"per_step_drafted\": [2], \"num_spec_steps\": 2"),
     "'num_spec_steps' is 2, but the steps add up to 1"},
    {"vllm", VLLM("\"per_step_accepted\": [1], \"per_step_drafted\": [2], \"num_draft_tokens\": 3"),
     "'num_draft_tokens' is 3, but the steps add up to 2"},
    {"vllm",
     VLLM("\"per_step_accepted\": [1], \"per_step_drafted\": [2], \"acceptance_histogram\": [1, "
          "0]"),
     "'acceptance_histogram[0]' must be 0, the number of steps that accepted 0 tokens"},
    {"vllm",
     VLLM("\"per_step_accepted\": [1], \"per_step_drafted\": [2], \"acceptance_histogram\": [0]"),
     "'acceptance_histogram' has 1 counts, but 1 steps accepted more"},
    {"vllm", VLLM("\"per_step_accepted\": [2, 0], \"per_step_drafted\": [2, 0]"),
     " all steps but the last wrote 3 tokens, but the output has only 3"},
};

static void test_bad_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_lines / sizeof *bad_lines; i++) {
        dsc_import_options options = plain;
        char place[400];
        dsc_error err = {0};
        options.format = bad_lines[i].format;
        int rc = import(bad_lines[i].line, bytes, &options, NULL, &err);
        snprintf(place, sizeof place, "%s:1:", in_path);
        expect_message(&err, rc, place, bad_lines[i].message);
        assert_int_not_equal(access(out_path, F_OK), 0);
    }
}

static void test_questions_bad(void **state)
{
    (void)state;
    const char *paths[] = {data(0, "specbench.jsonl")};
    dsc_import_options o = plain;
    dsc_error err = {0};
    o.questions = in_path;
    static const struct {
        const char *text, *place, *message;
    } bad[] = {
        {"{\"question_id\": 81, \"turns\": [\"a\"]}\n",
         "specbench.jsonl:1:", " question x-7 is missing in the file of --questions"},
        {"{\"question_id\": 81, \"turns\": [3]}\n", "in.jsonl:1:", " field 'turns[0]' must be"},
        {"{\"turns\": []}\n", "in.jsonl:1:", " field 'question_id' is missing"},
        {"{\"question_id\": 8, \"turns\": []}\n{\"question_id\": \"8\", \"turns\": []}\n",
         "in.jsonl:2:", " question 8 occurs twice"},
        {"{\n", "in.jsonl:1:1", "string or '}' expected"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_file(in_path, bad[i].text, strlen(bad[i].text));
        int rc = dsc_import(paths, 1, bytes, out_path, &o, NULL, &err);
        const char *at = strstr(err.message, bad[i].place);
        if (rc != DSC_EINPUT || !at || !strstr(at, bad[i].message))
            fail_msg("wanted '%s%s', got %d '%s'", bad[i].place, bad[i].message, rc, err.message);
    }
    o.format = "jsonl";
    assert_int_equal(dsc_import(paths, 1, bytes, out_path, &o, NULL, &err), DSC_EUSAGE);
}

// --- documents ---------------------------------------------------------------------------------

#define RECORD "{\"instruction\": \"i\", \"output\": \"o]},\\\"[{\\\\\"}"

static void test_documents(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int requests;
    } good[] = {
        {"[" RECORD "]", 1},
        {" [ " RECORD " ,\n\n" RECORD "\n]\n \n", 2},
        {"[\n" RECORD "," RECORD "," RECORD "]", 3},
        {"{\n\"instruction\": \"i\",\n\"output\": \"o\"}" RECORD "\n" RECORD, 3},
        {RECORD "\n" RECORD "\n", 2},
    };
    static const struct {
        const char *text, *message; // after "FILE:"
    } bad[] = {
        {"[" RECORD ",]", "1:47: an element of the list is missing"},
        {"[," RECORD "]", "1:2: an element of the list is missing"},
        {" [\n" RECORD "\n", "1:2: the list that begins here is not closed"},
        {"[" RECORD "\n]\n x", "3:2: unexpected text after the end of the list"},
        {"[" RECORD " {}]", "1:47: end of line expected near '{'"},
        {"[\n" RECORD ",\n\n  {\"output\": \"\xff\"}]", "4:"},
        {"[" RECORD ", {\"a\": 1 \"b\"}]", "1:58: '}' expected near '\"b\"'"},
        {"[\n\n " RECORD ",\n {\"instruction\": 4}]", "4: field 'instruction' must be"},
        {"{\n\"instruction\": \"i\"", "2:"},
        {"[]", "no requests"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        opened o = import_good(good[i].text, &plain);
        assert_int_equal(o.info->requests, good[i].requests);
        dsc_request q = request(&o, good[i].requests - 1);
        expect_text(q.output_text, "o]},\"[{\\");
        close_trace(&o);
    }
    remove_trace(out_path);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_error err = {0};
        dsc_import_options options = plain;
        options.format = "alpaca";
        for (int skip = 0; skip < 2; skip++) { // either way it comes to an end
            options.skip_errors = skip;
            int rc = import(bad[i].text, bytes, &options, NULL, &err);
            if (!skip && (rc != DSC_EINPUT || !strstr(err.message, bad[i].message)))
                fail_msg("wanted '%s', got %d '%s'", bad[i].message, rc, err.message);
        }
    }
}

// --- totals ------------------------------------------------------------------------------------

static int read_totals(dsc_table *t, const char *format, const char *const *paths, size_t count,
                       bool skip, int64_t *left_out, dsc_error *err)
{
    dsc_totals_options o = {.skip_errors = skip};
    const dsc_totals_driver *d = dsc_totals_find(format);
    assert_non_null(d);
    return dsc_totals_import(t, d, paths, count, &o, left_out, err);
}

static double number(const dsc_table *t, size_t row, const char *name)
{
    int c = dsc_table_find(t, name);
    assert_true(c >= 0);
    return dsc_table_real(t, row, (size_t)c);
}

// Element `position` of a list, from 1 on; NaN where it has no such element.
static double at_position(const dsc_table *t, size_t row, const char *column, int64_t position)
{
    int c = dsc_table_find(t, column);
    assert_true(c >= 0);
    const dsc_cell *x = dsc_table_at(t, row, (size_t)c);
    return position <= x->i ? dsc_cell_element(x, position - 1) : (double)NAN;
}

// SGLang's published histogram: 43 steps, 63 accepted, 106 tokens.
static void test_sglang(void **state)
{
    (void)state;
    const char *paths[] = {data(0, "sglang.json")};
    dsc_table t = {0};
    dsc_error err = {0};
    const dsc_totals_driver *found;
    assert_ok(dsc_totals_probe(&found, paths[0], &err), err);
    assert_string_equal(found->name, "sglang");
    assert_ok(dsc_totals_probe(&found, data(1, "vllm.json"), &err), err);
    assert_null(found);
    assert_ok(read_totals(&t, "sglang", paths, 1, false, NULL, &err), err);
    assert_int_equal(t.rows, 3);
    assert_string_equal(dsc_table_at(&t, 0, 0)->text, "req-a");
    assert_close(number(&t, 0, "num_accepted_tokens"), 63, 0);
    assert_close(number(&t, 0, "mean_acceptance_length"), 106. / 43, 1e-15);
    assert_true(isnan(number(&t, 0, "block_efficiency")));
    assert_close(number(&t, 0, "draft_acceptance_rate"), 63. / 215, 1e-15);
    assert_close(at_position(&t, 0, "acceptance_rate_pos", 2), 18. / 43, 1e-15);
    assert_close(at_position(&t, 0, "conditional_acceptance_rate", 2), 18. / 32, 1e-15);
    assert_close(at_position(&t, 0, "conditional_acceptance_rate", 5), 1, 0);
    // 215 = 43 x 5: every draft has 5 tokens.
    const double a = number(&t, 0, "alpha_iid");
    assert_close(43 * dsc_iid_accepted(a, 5), 63, 1e-9);
    assert_string_equal(dsc_table_at(&t, 1, 0)->text, "1");
    assert_close(number(&t, 1, "tokens_per_draft"), 3, 0);
    assert_true(isnan(number(&t, 1, "mean_acceptance_length")));
    assert_true(isnan(number(&t, 1, "num_accepted_tokens")));
    assert_true(isnan(number(&t, 1, "alpha_iid")));
    assert_true(isnan(at_position(&t, 1, "conditional_acceptance_rate", 1)));
    assert_close(number(&t, 2, "num_drafts"), 53, 0);
    assert_close(number(&t, 2, "tokens_per_draft"), 136. / 53, 1e-15);
    dsc_table_fini(&t);
}

// vLLM's published rates: mean length 2.865.
static void test_prometheus(void **state)
{
    (void)state;
    static const double rate[] = {.740, .473, .309, .187, .099, .057};
    const char *paths[] = {data(0, "prometheus_before.txt"), data(1, "prometheus_after.txt")};
    dsc_table t = {0};
    dsc_error err = {0};
    const dsc_totals_driver *found;
    assert_ok(dsc_totals_probe(&found, paths[0], &err), err);
    assert_string_equal(found->name, "prometheus");
    assert_ok(read_totals(&t, "prometheus", paths, 2, false, NULL, &err), err);
    assert_int_equal(t.rows, 3);
    assert_string_equal(dsc_table_at(&t, 0, 0)->text, "engine=\"0\",model_name=\"m\"");
    assert_close(number(&t, 0, "mean_acceptance_length"), 2.865, 1e-15);
    for (int d = 1; d <= 6; d++)
        assert_close(at_position(&t, 0, "acceptance_rate_pos", d), rate[d - 1], 1e-15);
    assert_close(at_position(&t, 0, "conditional_acceptance_rate", 6), 57. / 99, 1e-15);
    assert_string_equal(dsc_table_at(&t, 1, 0)->text, "engine=\"1\",model_name=\"m \\\"two\\\"}\"");
    assert_close(number(&t, 1, "mean_acceptance_length"), 1.5, 0);
    assert_close(number(&t, 2, "num_draft_tokens"), 6010, 0);
    dsc_table_fini(&t);
}

#define N(name) "v:spec_decode_num_" name
#define THREE N("drafts") " 4\n" N("draft_tokens") " 8\n" N("accepted_tokens") " 5\n"
#define POS(d) N("accepted_tokens_per_pos") "{position=\"" d "\"}"
#define INFO(fields) "{\"meta_info\": {" fields "}}"

static const struct {
    const char *format, *text, *message;
} bad_totals[] = {
    {"prometheus", "# nothing\n", ": no counter spec_decode_num_*"},
    {"prometheus", N("drafts") " 4\n", " counter spec_decode_num_draft_tokens is missing"},
    {"prometheus", N("drafts") " 4.5\n", ":1: a count must be a whole number"},
    {"prometheus", N("drafts") " -1\n", ":1: a count must be a whole number"},
    {"prometheus", N("drafts") " NaN\n", ":1: a count must be a whole number"},
    {"prometheus", N("drafts") "\n", ":1: a number must follow the metric"},
    {"prometheus", THREE N("drafts") " 4\n", ":4: the counter occurs twice with the same labels"},
    {"prometheus", N("drafts") "{a=b} 4\n", ":1: labels must be NAME=\"VALUE\""},
    {"prometheus", N("drafts") "{a=\"b\" 4\n", ":1: ',' or '}' expected after a label"},
    {"prometheus", N("drafts") "{a=\"b 4\n", ":1: labels must be NAME=\"VALUE\""},
    {"prometheus", POS("x") " 1\n", ":1: position must be a number from 0 to 255"},
    {"prometheus", POS("256") " 1\n", ":1: position must be a number from 0 to 255"},
    {"prometheus", N("accepted_tokens_per_pos") " 1\n", ":1: label 'position' is missing"},
    {"prometheus", N("drafts") "{position=\"0\"} 1\n", ":1: label 'position' is not expected"},
    {"prometheus", THREE POS("0") " 5\n",
     "position 0 was accepted 5 times, but the position before it only 4"},
    {"prometheus", THREE POS("1") " 1\n", "position 0 is missing"},
    {"prometheus", THREE POS("0") " 4\n",
     " adds up to 4 accepted tokens (bonus excluded), but there"},
    {"prometheus", N("drafts") " 4\n" N("draft_tokens") " 4\n" N("accepted_tokens") " 5\n",
     " 5 tokens were accepted, but only 4 drafted"},
    {"sglang", "{}", ":1: field 'meta_info' is missing"},
    {"sglang", INFO("\"id\": \"a\""), " field 'meta_info.spec_verify_ct' is missing"},
    {"sglang", INFO("\"spec_verify_ct\": -1"), "'meta_info.spec_verify_ct' is -1"},
    {"sglang",
     INFO("\"spec_verify_ct\": 3, \"spec_accept_token_num\": 2, \"spec_accepted_drafts\": 3"),
     " fields 'meta_info.spec_accepted_drafts' and 'meta_info.spec_accept_token_num' differ"},
    {"sglang", INFO("\"spec_verify_ct\": 3, \"spec_accept_histogram\": [1, \"1\"]"),
     " field 'meta_info.spec_accept_histogram' must be an integer, not a string"},
    {"sglang", INFO("\"spec_verify_ct\": 3, \"spec_accept_histogram\": 1"),
     " field 'meta_info.spec_accept_histogram' must be an array of at most 65536 counts"},
    {"sglang", INFO("\"spec_verify_ct\": 3, \"spec_accept_histogram\": [1, 1]"),
     " the histogram adds up to 2 drafts, but there were 3"},
    {"sglang",
     INFO("\"spec_verify_ct\": 2, \"spec_accept_histogram\": [1, 1], \"spec_accept_token_num\": 3"),
     " adds up to 1 accepted tokens (bonus excluded), but there were 3"},
    {"sglang",
     INFO("\"spec_verify_ct\": 2, \"spec_accept_token_num\": 3, \"spec_draft_token_num\": 2"),
     " 3 tokens were accepted, but only 2 drafted"},
    {"sglang",
     INFO("\"spec_verify_ct\": 4, \"completion_tokens\": 3, \"spec_accept_histogram\": [3, 1]"),
     " 4 drafts with 1 accepted tokens wrote more than the 3 tokens of the output"},
    {"sglang",
     INFO("\"spec_verify_ct\": 4, \"spec_accept_token_num\": 4, \"spec_accept_length\": 2.6"),
     " field 'meta_info.spec_accept_length' is 2.6, but the counts give 2"},
    {"sglang", "[" INFO("\"spec_verify_ct\": 1") ",", ":1:"},
};

static void test_bad_totals(void **state)
{
    (void)state;
    const char *paths[] = {in_path, in_path, in_path};
    dsc_error err;
    dsc_table t = {0};
    for (size_t i = 0; i < sizeof bad_totals / sizeof *bad_totals; i++) {
        err = (dsc_error){0};
        put_file(in_path, bad_totals[i].text, strlen(bad_totals[i].text));
        int rc = read_totals(&t, bad_totals[i].format, paths, 1, false, NULL, &err);
        expect_message(&err, rc, in_path, bad_totals[i].message);
    }
    const char *swapped[] = {data(0, "prometheus_after.txt"), data(1, "prometheus_before.txt")};
    int rc = read_totals(&t, "prometheus", swapped, 2, false, NULL, &err);
    expect_message(&err, rc, swapped[1], "counter drafts decreased or disappeared");
    assert_int_equal(read_totals(&t, "prometheus", paths, 3, false, NULL, &err), DSC_EUSAGE);
    dsc_table_fini(&t);
}

// With skip_errors a line is left out whole, the rest is kept.
static void test_skip_totals(void **state)
{
    (void)state;
    static const char text[] =
        INFO("\"spec_verify_ct\": 1") "\n"
                                      "[" INFO("\"spec_verify_ct\": 2") ", 5]\n{\n" INFO(
                                          "\"spec_verify_ct\": 3, \"completion_tokens\": 6") "\n";
    const char *paths[] = {in_path};
    dsc_table t = {0};
    dsc_error err = {0};
    int64_t left_out;
    put_file(in_path, text, sizeof text - 1);
    assert_ok(read_totals(&t, "sglang", paths, 1, true, &left_out, &err), err);
    assert_int_equal(left_out, 2);
    assert_int_equal(t.rows, 3);
    assert_close(number(&t, 2, "num_drafts"), 4, 0);
    assert_true(isnan(number(&t, 0, "tokens_per_draft")));
    assert_close(number(&t, 1, "tokens_per_draft"), 2, 0);
    dsc_table_fini(&t);
}

SUITE(import_formats)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_specbench),
        cmocka_unit_test(test_specbench_rule),
        cmocka_unit_test(test_specbench_doubt),
        cmocka_unit_test(test_specbench_runs),
        cmocka_unit_test(test_mtbench),
        cmocka_unit_test(test_alpaca),
        cmocka_unit_test(test_acclen),
        cmocka_unit_test(test_acclen_lists),
        cmocka_unit_test(test_vllm),
        cmocka_unit_test_setup(test_bad_lines, no_trace),
        cmocka_unit_test(test_questions_bad),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_sglang),
        cmocka_unit_test(test_prometheus),
        cmocka_unit_test(test_bad_totals),
        cmocka_unit_test(test_skip_totals),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
