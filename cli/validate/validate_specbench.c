// SPDX-License-Identifier: Apache-2.0
// Spec-Bench (Xia et al. 2024), logs of Vicuna-7B: acceptance statistics, and the speedup on each
// task from step times fitted to the other five (cli/validate/validate_times.h).
#include "cli/validate/validate.h"
#include "cli/validate/validate_times.h"
#include "traces/trace/accept_tally.h"
#include "traces/trace/trace_json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 6, ALL = TASKS };

// The first task is MT-bench; the logs name its eight categories instead.
static const char *const tasks[TASKS + 1] = {
    "MT-bench", "translation", "summarization", "question answering", "math", "retrieval", "all"};
static const char *const categories[TASKS] = {NULL, "translation",    "summarization",
                                              "qa", "math_reasoning", "rag"};

typedef struct log_file {
    const char *name; // of the file
    dsc_accept_tally tally[TASKS + 1];
    validate_turns turns;
} log_file;

// --- reading ----------------------------------------------------------------------------------

static int task_of(const json_t *metadata)
{
    const char *category = json_string_value(json_object_get(metadata, "category"));
    for (int t = 1; t < TASKS && category; t++)
        if (strcmp(category, categories[t]) == 0)
            return t;
    return 0;
}

static int add_request(void *context, const dsc_request *q, dsc_error *err)
{
    log_file *log = context;
    json_t *metadata;
    int rc = dsc_request_metadata(&metadata, q, err);
    int task = task_of(metadata), of[2] = {task, ALL};
    if (!rc)
        rc = validate_turns_add(&log->turns, q, log->name, (size_t)q->index, task, err);
    for (int t = 0; t < 2; t++) {
        dsc_accept_tally_begin(&log->tally[of[t]]);
        for (int64_t i = 0; i < q->steps.count && !rc; i++)
            rc = dsc_accept_tally_add(&log->tally[of[t]], q->steps.accepted[i],
                                      q->steps.drafted ? q->steps.drafted[i] : -1, err);
    }
    json_decref(metadata);
    return rc;
}

static int read_log(log_file *log, const char *name, const validate_row *row, dsc_error *err)
{
    char file[64];
    validate_imported imported;
    snprintf(file, sizeof file, "specbench/%s.jsonl", name);
    const validate_import answers = {.format = "specbench",
                                     .file = file,
                                     .tokenizer = "tokenizers/llama2.json",
                                     .questions = "specbench/questions.jsonl"};
    *log = (log_file){.name = name};
    int rc = validate_import_open(&imported, row, &answers, err);
    if (!rc)
        rc = dsc_trace_each(imported.trace, add_request, log, err);
    validate_import_close(&imported);
    return rc;
}

static void free_log(log_file *log)
{
    for (int t = 0; t <= TASKS; t++)
        dsc_accept_tally_fini(&log->tally[t]);
    validate_turns_fini(&log->turns);
}

// --- step times -------------------------------------------------------------------------------

// Tokens per second on a task, or on ALL, in the time of the model or, where x is NULL, of the log.
static double speed_of(const log_file *log, int task, const double x[VALIDATE_TERMS])
{
    double tokens = 0, time_s = 0;
    for (size_t i = 0; i < log->turns.count; i++) {
        const validate_turn *t = &log->turns.turn[i];
        if (task != ALL && t->group != task)
            continue;
        tokens += t->tokens;
        time_s += x ? validate_turn_time(t, x) : t->time_s;
    }
    return tokens / time_s;
}

// Predicts tokens per second on a task from the turns of all other tasks.
static int held_out_speed(const log_file *log, int task, double *speed, dsc_error *err)
{
    double x[VALIDATE_TERMS];
    int rc = validate_turns_fit(&log->turns, log->name, task, x, err);
    *speed = rc ? (double)NAN : speed_of(log, task, x);
    return rc;
}

// --- figures ----------------------------------------------------------------------------------

enum { VANILLA, SPS, EAGLE, LOGS };
static const char *const files[LOGS] = {"vanilla", "sps-68m", "eagle"};
static const char *const names[LOGS] = {"vanilla", "SpS", "EAGLE"};

// Finds the log and the task of a case such as "EAGLE, translation".
static bool find_case(const char *where, int *log, int *task)
{
    for (*log = 0; *log < LOGS; ++*log) {
        size_t n = strlen(names[*log]);
        if (strncmp(where, names[*log], n) != 0 || strncmp(where + n, ", ", 2) != 0)
            continue;
        for (*task = 0; *task <= TASKS; ++*task)
            if (strcmp(where + n + 2, tasks[*task]) == 0)
                return true;
    }
    return false;
}

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    const log_file *log = row->state; // [LOGS]
    double speed, plain;
    int l, task;
    if (!find_case(f->where, &l, &task))
        return DSC_OK;
    const dsc_accept_tally *tally = &log[l].tally[task];
    const dsc_metric_counts counts = dsc_accept_tally_counts(tally);
    dsc_arena arena = {0};
    dsc_metrics m;
    int rc = dsc_metrics_init(&m, &counts, &arena, err);
    if (rc)
        return rc;
    if (validate_is(f, DSC_COL_MEAN_ACCEPTANCE_LENGTH))
        f->predicted = m.mean_acceptance_length;
    else if (validate_is(f, DSC_COL_CONDITIONAL_ACCEPTANCE_RATE))
        f->predicted = f->at >= 1 && f->at <= (double)m.positions
                           ? m.conditional_acceptance_rate[(int64_t)f->at - 1]
                           : (double)NAN;
    else if (validate_is(f, "autocorrelation"))
        f->predicted = dsc_accept_tally_autocorrelation(tally);
    else if (validate_is(f, "tokens_per_s") && task == ALL)
        f->predicted = speed_of(&log[l], ALL, NULL);
    dsc_arena_fini(&arena);
    if (!validate_is(f, "speedup") || task == ALL)
        return DSC_OK;
    rc = held_out_speed(&log[l], task, &speed, err);
    if (!rc)
        rc = held_out_speed(&log[VANILLA], task, &plain, err);
    if (!rc)
        f->predicted = speed / plain;
    return rc;
}

static int begin(void *state, const validate_row *row, dsc_error *err)
{
    log_file *log = state; // [LOGS]
    int rc = DSC_OK;
    for (int l = 0; l < LOGS && !rc; l++)
        rc = read_log(&log[l], files[l], row, err);
    return rc;
}

static void end(void *state)
{
    log_file *log = state;
    for (int l = 0; l < LOGS; l++)
        free_log(&log[l]);
}

const validate_row_type validate_specbench = {
    .name = "specbench",
    .summary = "Spec-Bench logs: acceptance statistics, and speedup by held-out task (--data)",
    .needs_data = true,
    .state_size = LOGS * sizeof(log_file),
    .begin = begin,
    .end = end,
    .predict = predict,
};
