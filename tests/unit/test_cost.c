// SPDX-License-Identifier: Apache-2.0
// Cost models and what runs cost by them: tables and fits against figures made up or
// worked out by hand; batches against enumeration; refusals.
#include "tests/unit/cost_fixture.h"
#include "tests/unit/trace_fixture.h"

#include "base/statistics.h"
#include "sim/cost/price.h"
#include "sim/cost/width_dist.h"

#include <jansson.h>
#include <string.h>

static double draft_s(const dsc_cost *cost, double tokens, double context, double batch)
{
    double s;
    dsc_error err = {0};
    assert_ok(dsc_cost_draft(cost, (dsc_pass){tokens, context, batch, false}, &s, &err), err);
    return s;
}

static dsc_price price_of(const dsc_cost *cost, const dsc_counts *counts, int64_t batch)
{
    dsc_price p;
    dsc_error err = {0};
    assert_ok(dsc_price_run(&p, cost, counts, batch, &err), err);
    return p;
}

// --- table -------------------------------------------------------------------------------------

static const double tokens_at[] = {1, 2, 8, 64}, context_at[] = {0, 512, 4096}, batch_at[] = {1, 3};

// Linear in each key when the others are held.
static double plane(double t, double c, double b)
{
    return 0.01 + 3e-4 * t + 2e-6 * c + 1e-3 * b + 1e-8 * t * c + 1e-4 * t * b + 3e-7 * c * b;
}

static void write_grid(FILE *f, bool draft)
{
    fprintf(f, "# made: up\n# column tokens: each sequence's\ntokens\tcontext\tbatch\ttarget_s%s\n",
            draft ? "\tdraft_s" : "");
    for (int t = 0; t < 4; t++)
        for (int c = 0; c < 3; c++)
            for (int b = 0; b < 2; b++) {
                double s = plane(tokens_at[t], context_at[c], batch_at[b]);
                fprintf(f, "%g\t%g\t%g\t%.17g", tokens_at[t], context_at[c], batch_at[b], s);
                if (draft)
                    fprintf(f, "\t%.17g", s / 7);
                fputc('\n', f);
            }
}

static char *table_text(const char *name)
{
    static char text[500];
    snprintf(text, sizeof text, "table:%s", in_scratch(name));
    return text;
}

static void interpolation_is_exact_on_planes(void **state)
{
    (void)state;
    FILE *f = fopen(in_scratch("t.tsv"), "w");
    write_grid(f, true);
    assert_int_equal(fclose(f), 0);
    dsc_cost cost = cost_of(table_text("t.tsv"));
    for (double t = 1; t <= 64; t += 1.75)
        for (double c = 0; c <= 4096; c += 256)
            for (double b = 1; b <= 3; b += 0.5) {
                assert_close(target_s(&cost, t, c, b), plane(t, c, b), 1e-15);
                assert_close(draft_s(&cost, t, c, b), plane(t, c, b) / 7, 1e-15);
            }
    assert_close(target_s(&cost, 64, 4096, 3), plane(64, 4096, 3), 1e-15); // the last corner
    const dsc_pass beyond[] = {
        {64.5, 10, 1, false}, {0.5, 10, 1, false}, {2, 4097, 1, false}, {2, 10, 4, false}};
    const char *const says[] = {"tokens 64.5", "tokens 0.5", "context 4097", "batch 4"};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        double s;
        dsc_error err = {0};
        int rc = dsc_cost_target(&cost, beyond[i], &s, &err);
        expect_failure(rc, DSC_EINPUT, &err, says[i]);
    }
    dsc_cost_fini(&cost);
}

// Values that the file does not distinguish have no effect; a query that it does not cover is
// refused.
static void a_table_may_have_fewer_columns(void **state)
{
    (void)state;
    static const char text[] = "tokens\ttarget_s\tspread\n1\t0.5\tx\n5\t0.9\ty\n";
    put_file(in_scratch("t.tsv"), text, sizeof text - 1);
    dsc_cost cost = cost_of(table_text("t.tsv"));
    assert_close(target_s(&cost, 2, 1e6, 77), 0.6, 1e-15);
    double s;
    dsc_error err = {0};
    int rc = dsc_cost_draft(&cost, (dsc_pass){1, 1, 1, false}, &s, &err);
    expect_failure(rc, DSC_EINPUT, &err, "draft_s");
    dsc_cost_fini(&cost);
}

// --- prefill tokens next to decode tokens
// ---------------------------------------------------------

static const double chunk_at[] = {16, 64, 256};

// What a chunk adds: linear in each key when the others are held, 0 without a chunk.
static double chunk_plane(double t, double c, double b, double chunk)
{
    return chunk * (2e-4 + 1e-8 * c + 1e-6 * b - 1e-7 * t);
}

static double prefill_s(const dsc_cost *cost, double t, double c, double b, double chunk)
{
    double s = NAN;
    dsc_error err = {0};
    assert_ok(dsc_cost_prefill(cost, (dsc_pass){t, c, b, false}, chunk, &s, &err), err);
    return s;
}

// Rows with a chunk at the ends of the other keys, which is what `live profile` measures.
static void write_mixed_grid(FILE *f)
{
    fputs("tokens\tcontext\tbatch\tprefill_tokens\ttarget_s\tdraft_s\n", f);
    for (int t = 0; t < 4; t++)
        for (int c = 0; c < 3; c++)
            for (int b = 0; b < 2; b++)
                fprintf(f, "%g\t%g\t%g\t0\t%.17g\t1\n", tokens_at[t], context_at[c], batch_at[b],
                        plane(tokens_at[t], context_at[c], batch_at[b]));
    for (int t = 0; t < 4; t += 3)
        for (int c = 0; c < 3; c += 2)
            for (int b = 0; b < 2; b++)
                for (int p = 0; p < 3; p++)
                    fprintf(f, "%g\t%g\t%g\t%g\t%.17g\tnan\n", tokens_at[t], context_at[c],
                            batch_at[b], chunk_at[p],
                            plane(tokens_at[t], context_at[c], batch_at[b]) +
                                chunk_plane(tokens_at[t], context_at[c], batch_at[b], chunk_at[p]));
}

static void chunks_are_interpolated(void **state)
{
    (void)state;
    FILE *f = fopen(in_scratch("t.tsv"), "w");
    write_mixed_grid(f);
    assert_int_equal(fclose(f), 0);
    dsc_cost cost = cost_of(table_text("t.tsv"));
    assert_true(cost.mixed);
    for (double t = 1; t <= 64; t += 5.25)
        for (double c = 0; c <= 4096; c += 512)
            for (double b = 1; b <= 3; b += 0.5) {
                double before = 0;
                assert_close(target_s(&cost, t, c, b), plane(t, c, b), 1e-15);
                for (double chunk = 0; chunk <= 256; chunk += 4) {
                    const double s = prefill_s(&cost, t, c, b, chunk);
                    assert_close(s, chunk_plane(t, c, b, chunk), 1e-15);
                    assert_true(chunk == 0 || s > before); // monotone where the rows are
                    before = s;
                }
            }
    const struct {
        dsc_pass pass;
        double chunk;
        const char *says;
    } beyond[] = {{{2, 10, 1, false}, 257, "prefill_tokens 257"},
                  {{65, 10, 1, false}, 16, "tokens 65 next to prefill tokens"},
                  {{2, 4097, 1, false}, 16, "context 4097 next to prefill tokens"},
                  {{2, 10, 4, false}, 16, "batch 4 next to prefill tokens"}};
    double s;
    dsc_error err = {0};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
        expect_failure(dsc_cost_prefill(&cost, beyond[i].pass, beyond[i].chunk, &s, &err),
                       DSC_EINPUT, &err, beyond[i].says);
    expect_failure(dsc_cost_prefill(&cost, beyond[0].pass, -1, &s, &err), DSC_EUSAGE, &err,
                   "at least 0");
    dsc_cost_fini(&cost);
    static const char noisy[] = "tokens\tprefill_tokens\ttarget_s\n1\t0\t2\n1\t8\t1\n1\t16\t3\n";
    put_file(in_scratch("t.tsv"), noisy, sizeof noisy - 1);
    cost = cost_of(table_text("t.tsv"));
    assert_close(prefill_s(&cost, 1, 5, 7, 8), 0, 0); // no chunk makes a pass shorter
    assert_close(prefill_s(&cost, 1, 5, 7, 12), 0.5, 1e-15);
    dsc_cost_fini(&cost);
    cost = cost_of("linear:1,2");
    expect_failure(dsc_cost_prefill(&cost, beyond[0].pass, 1, &s, &err), DSC_EUSAGE, &err,
                   "no time of prefill tokens");
    dsc_cost_fini(&cost);
}

static void bad_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"context\ttarget_s\n1\t2\n", "column tokens"},
        {"tokens\tcontext\n1\t2\n", "column target_s"},
        {"tokens\ttarget_s\n", "no row"},
        {"# a: b\ntokens\ttarget_s\n1\t0.1\n1\t0.2\n", ":4: the keys come twice"},
        {"tokens\ttarget_s\n1\t0.1\n4\t0.2\n2\t0.3\n", ":4: the keys fall"},
        {"tokens\ttarget_s\n1\t0.1\n2\tnan\n", ":3: target_s"},
        {"tokens\ttarget_s\n1\t-0.1\n2\t0.1\n", ":2: target_s"},
        {"tokens\ttarget_s\n1\tinf\n2\t0.1\n", ":2: target_s"},
        {"tokens\ttarget_s\tdraft_s\n1\t0.1\t0\n", ":2: draft_s"},
        {"tokens\ttarget_s\n1.5\t0.1\n", ":2: tokens"},
        {"tokens\ttarget_s\n0\t0.1\n", ":2: tokens"},
        {"tokens\ttarget_s\nmany\t0.1\n", ":2: tokens"},
        {"tokens\tbatch\ttarget_s\n1\t1\t1\n1\t2\t1\n2\t2\t1\n",
         ":4: no row for tokens 2, batch 1"},
        {"tokens\tbatch\ttarget_s\n1\t1\t1\n1\t2\t1\n2\t1\t1\n",
         ":5: no row for tokens 2, batch 2"},
        {"{\"tokens\":1,\"target_s\":0.1}\n{\"tokens\":1,\"target_s\":0.1}\n", ":2: the keys come"},
        {"tokens\ttarget_s\n1\n", ":2: 1 fields"},
        {"tokens\tprefill_tokens\ttarget_s\n1\t8\t1\n", ":2: rows where prefill_tokens is 0"},
        {"tokens\tprefill_tokens\ttarget_s\n1\t0\t1\n1\t8\t2\n2\t0\t1\n",
         ":4: rows where prefill_tokens is 0"},
        {"tokens\tprefill_tokens\ttarget_s\n1\t0\t1\n1\t-8\t2\n", ":3: prefill_tokens"},
        {"tokens\tprefill_tokens\ttarget_s\n1\t0\t1\n1\t8.5\t2\n", ":3: prefill_tokens"},
        {"tokens\tprefill_tokens\ttarget_s\n1\t0\t1\n1\t8\t2\n1\t8\t2\n",
         ":4: the keys come twice"},
        {"tokens\tprefill_tokens\ttarget_s\n1\t0\t1\n4\t0\t2\n1\t8\t2\n4\t9\t3\n",
         ":5: no row for tokens 1, prefill_tokens 9"},
        {"tokens\tprefill_tokens\ttarget_s\n1\t0\t1\n4\t0\t2\n5\t8\t2\n", "tokens 5"},
        {"tokens\tprefill_tokens\ttarget_s\n1\t0\t1\n1\t8\tinf\n", ":3: target_s"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_cost cost;
        dsc_error err = {0};
        put_file(in_scratch("t.tsv"), bad[i].text, strlen(bad[i].text));
        int rc = dsc_cost_parse(&cost, table_text("t.tsv"), &err);
        expect_failure(rc, DSC_EINPUT, &err, bad[i].says);
        expect_failure(rc, DSC_EINPUT, &err, "t.tsv");
    }
    dsc_cost cost;
    dsc_error err = {0};
    expect_failure(dsc_cost_parse(&cost, "table:/nowhere/at.all", &err), DSC_EINPUT, &err,
                   "/nowhere/at.all");
}

// --- words -------------------------------------------------------------------------------------

static void bad_words_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"uni", "is unknown; choose"},
        {"unit:", "unit"},
        {"table", "table:FILE"},
        {"linear:nan,1", "linear:nan"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_cost cost;
        dsc_error err = {0};
        expect_failure(dsc_cost_parse(&cost, bad[i].text, &err), DSC_EUSAGE, &err, bad[i].says);
    }
}

// --- fit ---------------------------------------------------------------------------------------

// Uniform in [0, 1).
static double uniform(uint64_t *state)
{
    return (double)(draw(state) >> 11) * 0x1p-53;
}

static void a_line_is_found_among_outliers(void **state)
{
    (void)state;
    enum { N = 600 };
    double x[N], y[N];
    uint64_t s = 5;
    dsc_line line;
    dsc_error err = {0};
    for (int i = 0; i < N; i++) {
        x[i] = 1 + i % 8;
        y[i] = 0.02 + 0.0005 * x[i];
        if (i % 7 == 0) // one in seven was interrupted
            y[i] += 0.5 * uniform(&s);
    }
    assert_ok(dsc_fit_line(x, y, N, &line, &err), err);
    assert_close(line.intercept, 0.02, 1e-9);
    assert_close(line.slope, 0.0005, 1e-9);
    for (int i = 0; i < N; i++) // and with 2 % of noise: 4 standard errors of least squares
        y[i] *= 1 + 0.04 * (uniform(&s) - 0.5);
    assert_ok(dsc_fit_line(x, y, N, &line, &err), err);
    double error = 4 * 0.0225 * 0.04 / sqrt(12.0 * N);
    assert_close(line.slope, 0.0005, 1.3 * error / 2.29);
    assert_close(line.intercept + 4.5 * line.slope, 0.02225, 1.3 * error);
    for (int i = 0; i < N; i++)
        y[i] = 3 - 0.1 * x[i];
    assert_ok(dsc_fit_line(x, y, N, &line, &err), err);
    assert_close(line.slope, 0, 0); // never below 0
    assert_true(line.intercept > 2 && line.intercept < 3);
    for (int i = 0; i < N; i++)
        y[i] = 4 * x[i] - 1;
    assert_ok(dsc_fit_line(x, y, N, &line, &err), err);
    assert_close(line.intercept, 0, 0);
    assert_true(line.slope > 3 && line.slope < 4);
    for (int i = 0; i < N; i++) {
        x[i] = 6;
        y[i] = i % 5 ? 2 : 90;
    }
    assert_ok(dsc_fit_line(x, y, N, &line, &err), err);
    assert_close(line.intercept, 2, 1e-12);
    assert_close(line.slope, 0, 0);
    for (int i = 0; i < N; i++)
        x[i] = 0;
    assert_ok(dsc_fit_line_through_origin(x, y, N, &line, &err), err);
    assert_close(line.slope, 0, 0);
    assert_ok(dsc_fit_line(x, y, 1, &line, &err), err); // one point
    assert_close(line.intercept, 90, 0);
}

static void write_steps(const char *name, bool drafted, bool times, int requests)
{
    enum { STEPS = 300 };
    uint16_t accepted[STEPS], lengths[STEPS];
    float draft[STEPS], verify[STEPS];
    dsc_error err = {0};
    dsc_trace_writer *w;
    uint64_t s = 9;
    dsc_trace_info info = sample_info(false, false);
    info.steps = DSC_STEPS_LOGGED;
    info.has_step_drafted = drafted;
    info.has_step_draft_s = info.has_step_verify_s = times;
    expect_ok(dsc_trace_writer_open(&w, in_scratch(name), &info, true, 0, &err), &err);
    for (int r = 0; r < requests; r++) {
        char id[16];
        dsc_request_input q = {.id = {id, snprintf(id, sizeof id, "%d", r)}};
        for (int i = 0; i < STEPS; i++) {
            lengths[i] = (uint16_t)(draw(&s) % 9);
            accepted[i] = (uint16_t)(draw(&s) % (lengths[i] + 1u));
            verify[i] = 0.03f + 0.001f * (float)(lengths[i] + 1);
            draft[i] = 0.004f * (float)lengths[i];
            if (i % 10 == 0)
                verify[i] += (float)uniform(&s), draft[i] += 3 * (float)uniform(&s);
        }
        q.steps = (dsc_steps){STEPS, accepted, drafted ? lengths : NULL, times ? draft : NULL,
                              times ? verify : NULL};
        expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
}

static void a_fit_recovers_the_step_times(void **state)
{
    (void)state;
    char text[500];
    dsc_error err = {0};
    snprintf(text, sizeof text, "fit:%s", in_scratch("a.dst"));
    write_steps("a.dst", true, true, 5);
    dsc_cost cost = cost_of(text);
    assert_close(cost.fixed_s, 0.03, 1e-7);
    assert_close(cost.per_token_s, 0.001, 1e-7);
    assert_close(cost.draft_s, 0.004, 1e-7);
    assert_non_null(strstr(cost.note, "1500 steps: verify_s = 0.03 + 0.001 x tokens"));
    assert_non_null(strstr(cost.note, "draft_s = 0.004 x draft tokens"));
    dsc_cost_fini(&cost);
    write_steps("a.dst", true, true, 500); // more than are looked at
    cost = cost_of(text);
    assert_close(cost.fixed_s, 0.03, 1e-7);
    assert_close(cost.draft_s, 0.004, 1e-7);
    assert_non_null(strstr(cost.note, "75000 steps"));
    assert_non_null(strstr(cost.note, "; on the held-out half R2 "));
    assert_non_null(strstr(cost.note, ", residuals all -")); // interrupted steps took longer
    dsc_cost_fini(&cost);
    write_steps("a.dst", false, true, 5); // lengths unknown: a level
    cost = cost_of(text);
    assert_close(cost.per_token_s, 0, 0);
    assert_true(cost.fixed_s > 0.031 && cost.fixed_s < 0.039);
    write_steps("a.dst", true, false, 5);
    expect_failure(dsc_cost_parse(&cost, text, &err), DSC_EINPUT, &err, "verify_s");
    write_steps("a.dst", true, true, 0);
    expect_failure(dsc_cost_parse(&cost, text, &err), DSC_EINPUT, &err, "no step");
}

// --- Spec-Bench --------------------------------------------------------------------------------

// A turn of a log of Spec-Bench: what it took, and what it should.
typedef struct turn {
    int task;
    double steps, tokens, prompt, wall_s; // prompt: bytes of what was asked in all turns so far
} turn;

enum { TASKS = 6, TURNS = 560 };

static int task_of(const char *category)
{
    static const char *const name[TASKS] = {"translation", "summarization", "qa", "math_reasoning",
                                            "rag"};
    for (int t = 0; t + 1 < TASKS; t++)
        if (strcmp(category, name[t]) == 0)
            return t;
    return TASKS - 1; // the eight categories of MT-bench
}

static size_t read_turns(const char *answers, const char *questions, turn *out)
{
    FILE *a = fopen(answers, "r"), *q = fopen(questions, "r");
    char *line = NULL;
    size_t room = 0, n = 0;
    assert_true(a && q);
    while (getline(&line, &room, a) > 0) {
        json_t *answer = json_loads(line, 0, NULL);
        assert_true(getline(&line, &room, q) > 0);
        json_t *question = json_loads(line, 0, NULL);
        json_t *choice = json_array_get(json_object_get(answer, "choices"), 0), *s;
        assert_true(json_equal(json_object_get(answer, "question_id"),
                               json_object_get(question, "question_id")));
        double prompt = 0;
        size_t i;
        json_array_foreach(json_object_get(choice, "decoding_steps"), i, s)
        {
            assert_true(n < TURNS);
            prompt +=
                (double)json_string_length(json_array_get(json_object_get(question, "turns"), i));
            out[n++] = (turn){
                task_of(json_string_value(json_object_get(answer, "category"))),
                json_number_value(s),
                json_number_value(json_array_get(json_object_get(choice, "new_tokens"), i)), prompt,
                json_number_value(json_array_get(json_object_get(choice, "wall_time"), i))};
        }
        json_decref(answer);
        json_decref(question);
    }
    free(line);
    fclose(a);
    fclose(q);
    return n;
}

// Tokens per second of a task: as it was, and by a fit to the other tasks of
//   wall = START + STEP steps + READ prompt,
// relative to the wall time, so that short turns count as much as long ones.
static void speeds(const turn *t, size_t n, int task, double *measured, double *predicted)
{
    static double x[TURNS][3], y[TURNS];
    double c[3], scale, tokens = 0, wall = 0, time = 0;
    size_t rows = 0;
    dsc_error err = {0};
    for (size_t i = 0; i < n; i++)
        if (t[i].task != task) {
            x[rows][0] = 1 / t[i].wall_s;
            x[rows][1] = t[i].steps / t[i].wall_s;
            x[rows][2] = t[i].prompt / t[i].wall_s;
            y[rows++] = 1;
        }
    assert_ok(dsc_fit_robust(x[0], 3, y, rows, c, &scale, &err), err);
    for (size_t i = 0; i < n; i++)
        if (t[i].task == task) {
            tokens += t[i].tokens;
            wall += t[i].wall_s;
            time += c[0] + c[1] * t[i].steps + c[2] * t[i].prompt;
        }
    *measured = tokens / wall;
    *predicted = tokens / time;
}

// The speedup of EAGLE, whose steps are all of one tree, on a task that the fit has not seen, is
// within 3 % of what was measured. (That of SpS is not: its drafts have between 1 and 20 tokens,
// which the log does not contain.)
static void step_times_predict_a_task_that_was_held_out(void **state)
{
    (void)state;
    static turn eagle[TURNS], vanilla[TURNS];
    char questions[500], answers[500];
    data_path("specbench/questions.jsonl", questions, sizeof questions);
    data_path("specbench/eagle.jsonl", answers, sizeof answers);
    assert_int_equal(read_turns(answers, questions, eagle), TURNS);
    data_path("specbench/vanilla.jsonl", answers, sizeof answers);
    assert_int_equal(read_turns(answers, questions, vanilla), TURNS);
    for (int task = 0; task < TASKS; task++) {
        double measured[2], predicted[2];
        speeds(eagle, TURNS, task, &measured[0], &predicted[0]);
        speeds(vanilla, TURNS, task, &measured[1], &predicted[1]);
        double was = measured[0] / measured[1], is = predicted[0] / predicted[1];
        print_message("task %d: speed-up %.3f, predicted %.3f (%+.1f %%)\n", task, was, is,
                      100 * (is / was - 1));
        assert_close(is / was, 1, 0.03);
    }
}

// --- runs --------------------------------------------------------------------------------------

// Counts of a made-up run: widths 1 .. 6 and what they sum to.
typedef struct made {
    int64_t width[6], histogram[6];
    dsc_counts counts;
} made;

static void make_up(made *m)
{
    static const int64_t width[] = {3, 0, 7, 11, 2, 40};
    *m = (made){.histogram = {10, 20, 33, 0, 0, 0}};
    memcpy(m->width, width, sizeof width);
    m->counts = (dsc_counts){.output_tokens = 149,
                             .draft_calls = 120,
                             .draft_call_tokens = 180,
                             .width = m->width,
                             .width_length = 6,
                             .histogram = m->histogram,
                             .histogram_length = 6};
    for (int i = 0; i < 6; i++) {
        m->counts.target_calls += width[i];
        m->counts.target_call_tokens += width[i] * (i + 1);
    }
    m->counts.target_call_context = 700 * m->counts.target_calls;
    m->counts.output_context = 690 * m->counts.output_tokens;
}

// The same straight line as a table: priced width by width, as the sums are.
static void a_linear_table_is_linear(void **state)
{
    (void)state;
    made m;
    make_up(&m);
    static const char text[] =
        "tokens\ttarget_s\tdraft_s\n1\t2.5\t0.25\n3\t3.5\t0.25\n6\t5\t0.25\n";
    put_file(in_scratch("t.tsv"), text, sizeof text - 1);
    dsc_cost linear = cost_of("linear:2,0.5,0.25"), table = cost_of(table_text("t.tsv"));
    dsc_price a = price_of(&linear, &m.counts, 1), b = price_of(&table, &m.counts, 1);
    double time = 2 * 63 + 0.5 * (double)m.counts.target_call_tokens + 0.25 * 120;
    assert_close(a.time_s, time, 1e-12);
    assert_close(b.time_s, time, 1e-12);
    assert_close(a.plain_s, 149 * 2.5, 1e-12);
    assert_close(b.speedup, a.speedup, 1e-14);
    assert_close(a.tokens_per_s, 149 / time, 1e-12);
    linear.draft_s = 0; // a batch of B: B times the tokens, one fixed time
    dsc_price c = price_of(&linear, &m.counts, 7);
    time = 2 * 63 + 7 * 0.5 * (double)m.counts.target_call_tokens;
    assert_close(c.time_s, time, 1e-12);
    assert_close(c.speedup, 149 * (2 + 7 * 0.5) / time, 1e-12);
    assert_close(c.tokens_per_s, 7 * 149 / time, 1e-12);
    dsc_cost_fini(&table);
    const dsc_counts none = {0};
    assert_true(isnan(price_of(&linear, &none, 1).speedup));
}

// Each model's pass behind the other's and behind its own.
static void a_pass_behind_its_own_kind_has_its_own_price(void **state)
{
    (void)state;
    made m;
    make_up(&m);
    static const char text[] = "tokens\ttarget_s\ttarget_again_s\tdraft_s\tdraft_again_s\n"
                               "1\t2\t1.5\t0.25\t0.125\n6\t7\t4\t0.25\t0.125\n";
    put_file(in_scratch("t.tsv"), text, sizeof text - 1);
    dsc_cost table = cost_of(table_text("t.tsv"));
    const double calls = 63, drafts = 120, tokens = (double)m.counts.target_call_tokens;
    dsc_price x = price_of(&table, &m.counts, 1);
    assert_close(x.plain_s, 149 * 1.5, 1e-12);
    assert_close(x.verify_s, calls + tokens, 1e-12);
    assert_close(x.draft_s, 0.25 * calls + 0.125 * (drafts - calls), 1e-12);
    m.counts.draft_calls = 40; // fewer than the target's: each is the first of its step
    assert_close(price_of(&table, &m.counts, 1).draft_s, 0.25 * 40, 1e-12);
    m.counts.draft_calls = m.counts.draft_call_tokens = 0;
    assert_close(price_of(&table, &m.counts, 1).verify_s, calls + tokens / 2, 1e-12);
    dsc_cost_fini(&table);
}

// Widths, not their mean: a step up from 4 tokens on.
static void steps_in_width_are_priced(void **state)
{
    (void)state;
    made m;
    make_up(&m);
    static const char text[] =
        "tokens\tcontext\ttarget_s\n1\t600\t1\n1\t800\t1\n4\t600\t1\n4\t800\t1\n5\t600\t9\n5\t800\t"
        "9\n6\t600\t9\n6\t800\t9\n";
    put_file(in_scratch("t.tsv"), text, sizeof text - 1);
    dsc_cost table = cost_of(table_text("t.tsv"));
    m.counts.draft_calls = 0;
    assert_close(price_of(&table, &m.counts, 1).time_s, 21 + 9 * 42, 1e-12);
    m.counts.target_call_context = 801 * m.counts.target_calls;
    dsc_price p;
    dsc_error err = {0};
    expect_failure(dsc_price_run(&p, &table, &m.counts, 1, &err), DSC_EINPUT, &err, "context 801");
    dsc_cost_fini(&table);
}

static void sums_of_widths_are_convolved(void **state)
{
    (void)state;
    made m;
    make_up(&m);
    double want[6 * 5 + 1] = {0}, total = 63;
    for (int a = 0; a < 6 * 6 * 6 * 6 * 6; a++) {
        double w = 1;
        int sum = 0;
        for (int i = 0, code = a; i < 5; i++, code /= 6) {
            w *= (double)m.width[code % 6] / total;
            sum += code % 6 + 1;
        }
        want[sum] += w;
    }
    dsc_width_dist dist;
    dsc_error err = {0};
    assert_ok(dsc_width_dist_init(&dist, m.width, 6, 5, &err), err);
    assert_int_equal(dist.least, 5);
    assert_int_equal(dist.count, 26);
    for (int i = 5; i <= 30; i++)
        assert_close(dist.chance[i - 5], want[i], 2e-10); // the ends are cut
    dsc_width_dist_fini(&dist);
    // 256 of them: mean and variance of the sum.
    double mean = 0, square = 0, of_mean = 0, of_square = 0;
    for (int i = 0; i < 6; i++) {
        mean += (double)m.width[i] / total * (i + 1);
        square += (double)m.width[i] / total * (i + 1) * (i + 1);
    }
    assert_ok(dsc_width_dist_init(&dist, m.width, 6, 256, &err), err);
    for (size_t i = 0; i < dist.count; i++) {
        double d = (double)(dist.least + (int64_t)i) - 256 * mean;
        of_mean += dist.chance[i] * d;
        of_square += dist.chance[i] * d * d;
    }
    assert_close(of_mean, 0, 1e-7);
    assert_close(of_square, 256 * (square - mean * mean), 1e-5);
    dsc_width_dist_fini(&dist);
    // One alone, and all alike, are what they are.
    assert_ok(dsc_width_dist_init(&dist, m.width, 6, 1, &err), err);
    for (int i = 0; i < 6; i++)
        assert_close(dist.chance[i], (double)m.width[i] / total, 0);
    dsc_width_dist_fini(&dist);
    static const int64_t same[] = {0, 0, 12, 0};
    assert_ok(dsc_width_dist_init(&dist, same, 4, 1000000000, &err), err);
    assert_int_equal(dist.count, 1);
    assert_int_equal(dist.least, 3000000000);
    dsc_width_dist_fini(&dist);
    expect_failure(dsc_width_dist_init(&dist, m.width, 6, 1 << 22, &err), DSC_EUSAGE, &err,
                   "batch");
}

// The sums of `batch` = 2 or 3 widths by plain loops, normalized as the module does.
static void plain_sums(const int64_t *width, int64_t n, int64_t batch, double *out)
{
    double one[80], two[160] = {0}, total = 0, all = 0;
    for (int64_t i = 0; i < n; i++)
        total += (double)width[i];
    for (int64_t i = 0; i < n; i++)
        one[i] = (double)width[i] / total;
    for (int64_t i = 0; i < n; i++) {
        two[2 * i] += one[i] * one[i];
        for (int64_t j = i + 1; j < n; j++)
            two[i + j] += 2 * one[i] * one[j];
    }
    for (int64_t x = 0; x < batch * (n - 1) + 1; x++)
        out[x] = batch == 2 ? two[x] : 0;
    for (int64_t j = 0; batch == 3 && j < n; j++)
        for (int64_t i = 0; i < 2 * n - 1; i++)
            out[i + j] += one[j] * two[i];
    for (int64_t x = 0; x < batch * (n - 1) + 1; x++)
        all += out[x];
    for (int64_t x = 0; x < batch * (n - 1) + 1; x++)
        out[x] /= all;
}

// Vectors and steps do not change a bit of the sums.
static void sums_of_widths_are_those_of_plain_loops(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= 80; n++)
        for (int64_t batch = 2; batch <= 3; batch++)
            for (int64_t step = 1; step <= 4; step += 3) {
                int64_t width[80], apart[4 * 80] = {0};
                double want[3 * 80];
                dsc_width_dist dist;
                dsc_error err = {0};
                for (int64_t i = 0; i < n; i++)
                    apart[2 + i * step] = width[i] = 100 + i * i * 7919 % 301;
                plain_sums(width, n, batch, want);
                assert_ok(dsc_width_dist_init(&dist, apart, 4 * 80, batch, &err), err);
                assert_int_equal(dist.least, 3 * batch);
                assert_int_equal(dist.step, step);
                assert_int_equal(dist.count, batch * (n - 1) + 1);
                assert_memory_equal(dist.chance, want, dist.count * sizeof *want);
                dsc_width_dist_fini(&dist);
            }
}

// With the batch multiplying takes over, and drafts that are not accepted cost what they weigh:
// speed-up falls to (block efficiency) / (tokens in a pass). With a long context the keys and
// values, which a draft reads once like everyone else, hold longer.
static void batches_become_compute_bound(void **state)
{
    (void)state;
    made m;
    make_up(&m);
    m.counts.draft_calls = 0;
    m.counts.target_call_context = m.counts.output_context = 0;
    dsc_cost cost = cost_of("roofline:llama-2-7b,a100-80,efficiency=1,overhead=0,memory=1000");
    double last = INFINITY, rate = 0, width = (double)m.counts.target_call_tokens / 63;
    for (int64_t b = 1; b <= 512; b *= 2) {
        dsc_price p = price_of(&cost, &m.counts, b);
        assert_true(p.speedup < last * (1 + 1e-9) && p.tokens_per_s > rate * (1 - 1e-9));
        last = p.speedup;
        rate = p.tokens_per_s;
    }
    assert_close(price_of(&cost, &m.counts, 1).speedup, 149.0 / 63, 0.01);
    assert_close(last, 149.0 / 63 / width, 0.05);
    assert_true(last < 1);
    m.counts.target_call_context = 4000 * 63;
    m.counts.output_context = 4000 * 149;
    assert_true(price_of(&cost, &m.counts, 128).speedup > 1.5);
    dsc_cost_fini(&cost);
    // Each sum of widths at its own price, against all ways that three widths can come.
    cost = cost_of("roofline:llama-2-7b,rtx-3090,efficiency=1,overhead=0");
    double mean = 0;
    for (int a = 0; a < 6 * 6 * 6; a++) {
        int i = a % 6, j = a / 6 % 6, k = a / 36, tokens = i + j + k + 3;
        double weight = (double)(m.width[i] * m.width[j] * m.width[k]) / (63.0 * 63 * 63);
        mean += weight * target_s(&cost, tokens / 3.0, 4000, 3);
    }
    assert_close(price_of(&cost, &m.counts, 3).time_s, 63 * mean, 1e-9 * 63 * mean);
    dsc_cost_fini(&cost);
}

// --- i.i.d. ------------------------------------------------------------------------------------

// Calls sampled from equal conditional acceptance rates agree with the closed form; others do not.
static void the_closed_form_is_that_of_the_same_rate(void **state)
{
    (void)state;
    int64_t histogram[] = {400, 240, 144, 216}; // 1000 calls at rate .6, three drafts
    dsc_counts c = {.output_tokens = 2176,
                    .target_calls = 1000,
                    .num_accepted_tokens = 1176,
                    .histogram = histogram,
                    .histogram_length = 4};
    assert_close(dsc_iid_block_efficiency(&c, 3), 2.176, 1e-12);
    assert_close(dsc_iid_block_efficiency(&c, 3), dsc_block_efficiency(&c), 1e-12);
    // Conditional acceptance rates .5, .8, .9: 1000 calls accept 1000 (.5 + .4 + .36).
    int64_t rising[] = {500, 100, 40, 360};
    c.histogram = rising;
    c.num_accepted_tokens = 1260;
    double a = 1260.0 / (1260 + 640);
    assert_close(dsc_iid_block_efficiency(&c, 3), 1 + a + a * a + a * a * a, 1e-12);
    // A list that ends after its last nonzero count gives the same result.
    int64_t half[] = {500, 500};
    c.histogram = half;
    c.histogram_length = 2;
    c.num_accepted_tokens = 500;
    a = 500.0 / 1500;
    assert_close(dsc_iid_block_efficiency(&c, 3), 1 + a + a * a + a * a * a, 1e-12);
    assert_close(dsc_iid_block_efficiency(&c, 1), 1.5, 1e-12);
    assert_close(dsc_iid_block_efficiency(&c, 0), 1, 0);
    c.target_calls = 0;
    assert_true(isnan(dsc_iid_block_efficiency(&c, 3)));
}

SUITE(cost)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interpolation_is_exact_on_planes),
        cmocka_unit_test(a_table_may_have_fewer_columns),
        cmocka_unit_test(chunks_are_interpolated),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(bad_words_are_refused),
        cmocka_unit_test(a_line_is_found_among_outliers),
        cmocka_unit_test(a_fit_recovers_the_step_times),
        cmocka_unit_test(step_times_predict_a_task_that_was_held_out),
        cmocka_unit_test(a_linear_table_is_linear),
        cmocka_unit_test(a_pass_behind_its_own_kind_has_its_own_price),
        cmocka_unit_test(steps_in_width_are_priced),
        cmocka_unit_test(sums_of_widths_are_convolved),
        cmocka_unit_test(sums_of_widths_are_those_of_plain_loops),
        cmocka_unit_test(batches_become_compute_bound),
        cmocka_unit_test(the_closed_form_is_that_of_the_same_rate),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
