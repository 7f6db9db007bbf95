// SPDX-License-Identifier: Apache-2.0
// Reads lines of `draftscope live run --json`. Unknown fields are ignored; an error names a missing
// field.
#include "base/columns.h"
#include "base/file.h"
#include "base/json_file.h"
#include "cli/validate/validate_live.h"
#include "sim/run/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const size_t MAX_BYTES = (size_t)1 << 30;
enum { SCHEMA = 1 };

const char *const validate_sides[VALIDATE_SIDES] = {"target", "draft", "middle"};

// --- requests ------------------------------------------------------------------------------------

int validate_requests_init(validate_requests *r, size_t requests, size_t histogram_length,
                           int lists, dsc_error *err)
{
    *r = (validate_requests){.requests = requests, .histogram_length = histogram_length};
    int rc = DSC_OK;
    for (int l = 0; l < lists && !rc; l++)
        rc = dsc_new(&r->list[l], requests, err);
    return rc ? rc
              : dsc_alloc(&r->histogram, requests, histogram_length * sizeof *r->histogram, err);
}

void validate_requests_fini(validate_requests *r)
{
    for (int l = 0; l < VALIDATE_LISTS; l++)
        free(r->list[l]);
    free(r->histogram);
    *r = (validate_requests){0};
}

// --- fields --------------------------------------------------------------------------------------

static int get(json_t **out, json_t *root, const char *name, dsc_error *err)
{
    *out = json_object_get(root, name);
    return *out ? DSC_OK : dsc_fail(err, DSC_EINPUT, "field '%s' is missing", name);
}

static int get_integer(int64_t *out, json_t *root, const char *name, dsc_error *err)
{
    json_t *x;
    int rc = get(&x, root, name, err);
    if (!rc && (!json_is_integer(x) || json_integer_value(x) < 0))
        rc = dsc_fail(err, DSC_EINPUT, "'%s' is not a non-negative integer", name);
    *out = rc ? 0 : json_integer_value(x);
    return rc;
}

static int get_real(double *out, json_t *root, const char *name, dsc_error *err)
{
    json_t *x;
    int rc = get(&x, root, name, err);
    if (!rc && (!json_is_number(x) || json_number_value(x) < 0))
        rc = dsc_fail(err, DSC_EINPUT, "'%s' is not a non-negative number", name);
    *out = rc ? 0 : json_number_value(x);
    return rc;
}

static int get_text(const char **out, json_t *root, const char *name, dsc_error *err)
{
    json_t *x;
    int rc = get(&x, root, name, err);
    if (!rc && !json_is_string(x))
        rc = dsc_fail(err, DSC_EINPUT, "'%s' is not a string", name);
    *out = rc ? "" : json_string_value(x);
    return rc;
}

// Reads a list of `length` non-negative numbers.
static int get_list(double *out, size_t length, json_t *root, const char *name, dsc_error *err)
{
    json_t *x;
    int rc = get(&x, root, name, err);
    if (!rc && json_array_size(x) != length)
        rc = dsc_fail(err, DSC_EINPUT, "'%s' has %zu numbers, not %zu", name, json_array_size(x),
                      length);
    for (size_t i = 0; i < length && !rc; i++) {
        json_t *e = json_array_get(x, i);
        out[i] = json_number_value(e);
        if (!json_is_number(e) || !(out[i] >= 0))
            rc = dsc_fail(err, DSC_EINPUT, "'%s' is not a list of non-negative numbers", name);
    }
    return rc;
}

// --- parts of a line -----------------------------------------------------------------------------

static int read_parameter(validate_line *l, size_t o, dsc_error *err)
{
    const dsc_option *option = &l->config.drafter->option[o];
    const char *word;
    char name[DSC_PARAMETER_NAME];
    int rc;
    dsc_parameter_name(option, name);
    switch (option->kind) {
    case DSC_OPTION_INT: {
        json_t *x;
        rc = get(&x, l->root, name, err);
        l->config.parameter[o] = rc ? 0 : json_integer_value(x);
        if (!rc && (!json_is_integer(x) || l->config.parameter[o] < option->min ||
                    l->config.parameter[o] > option->max))
            rc = dsc_fail(err, DSC_EINPUT, "'%s' is not an integer from %" PRId64 " to %" PRId64,
                          name, option->min, option->max);
        return rc;
    }
    case DSC_OPTION_REAL: {
        json_t *x;
        rc = get(&x, l->root, name, err);
        l->config.real[o] = rc ? 0 : json_number_value(x);
        if (!rc && (!json_is_number(x) || !(l->config.real[o] >= option->least) ||
                    !(l->config.real[o] <= option->most)))
            rc = dsc_fail(err, DSC_EINPUT, "'%s' is not a number from %g to %g", name,
                          option->least, option->most);
        return rc;
    }
    case DSC_OPTION_TEXT:
        rc = get_text(&word, l->root, name, err);
        l->config.text[o] = *word ? word : NULL;
        return rc;
    default:
        rc = get_text(&word, l->root, name, err);
        return rc ? rc : dsc_option_single(option, word, &l->config.parameter[o], err);
    }
}

static int read_config(validate_line *l, dsc_error *err)
{
    const char *method, *rule;
    int rc = get_text(&method, l->root, "method", err);
    if (!rc)
        rc = get_text(&rule, l->root, "rule", err);
    if (!rc && !(l->config.drafter = dsc_drafter_find(method, err)))
        rc = DSC_EINPUT;
    if (!rc && !(l->rule = dsc_verifier_find(rule, err)))
        rc = DSC_EINPUT;
    for (size_t o = 0; !rc && o < l->config.drafter->option_count; o++)
        rc = read_parameter(l, o, err);
    return rc ? rc : dsc_config_prepare(&l->config, err);
}

static int read_sampling(validate_line *l, dsc_error *err)
{
    const char *device;
    int64_t invariant;
    json_t *replayed = json_object_get(l->root, "trace_hash");
    json_t *divergences = json_object_get(l->root, "divergences");
    int rc = get_real(&l->temperature, l->root, "temperature", err);
    if (!rc)
        rc = get_integer(&l->top_k, l->root, "top_k", err);
    if (!rc)
        rc = get_real(&l->top_p, l->root, "top_p", err);
    if (!rc)
        rc = get_integer(&l->seed, l->root, "seed", err);
    if (!rc)
        rc = get_integer(&l->max_tokens, l->root, "max_tokens", err);
    if (!rc)
        rc = get_text(&device, l->root, "device", err);
    if (!rc)
        rc = get_integer(&invariant, l->root, "batch_invariant", err);
    if (!rc)
        rc = get_integer(&l->first_request, l->root, "first_request", err);
    if (!rc)
        rc = get_text(&l->prompts_sha256, l->root, "prompts_sha256", err);
    if (!rc)
        rc = get_text(&l->outputs_sha256, l->root, "outputs_sha256", err);
    if (rc)
        return rc;
    l->same_rounding = invariant || strcmp(device, "cpu") == 0;
    l->trace_hash = json_string_value(replayed);
    l->divergences = json_is_number(divergences) ? json_number_value(divergences) : (double)NAN;
    return DSC_OK;
}

static int read_models(validate_line *l, dsc_error *err)
{
    int rc = DSC_OK;
    for (int s = 0; s < VALIDATE_SIDES && !rc; s++) {
        char name[64];
        snprintf(name, sizeof name, "%s_config_sha256", validate_sides[s]);
        if (s && !json_object_get(l->root, name))
            continue;
        rc = get_text(&l->model[s].config_sha256, l->root, name, err);
        snprintf(name, sizeof name, "%s_weights_sha256", validate_sides[s]);
        if (!rc)
            rc = get_text(&l->model[s].weights_sha256, l->root, name, err);
    }
    return rc;
}

static int read_requests(validate_line *l, dsc_error *err)
{
    static const char *const names[VALIDATE_LISTS] = {DSC_COL_REQUEST_OUTPUT_TOKENS,
                                                      DSC_COL_REQUEST_TARGET_CALLS,
                                                      DSC_COL_REQUEST_NUM_DRAFT_TOKENS,
                                                      DSC_COL_REQUEST_NUM_ACCEPTED_TOKENS,
                                                      DSC_COL_REQUEST_DRAFT_CALLS,
                                                      "request_time_s",
                                                      "request_prefill_s",
                                                      "request_output_nll",
                                                      "request_output_entropy",
                                                      "request_baseline_output_tokens",
                                                      "request_baseline_time_s",
                                                      "request_baseline_prefill_s"};
    validate_requests *r = &l->requests;
    json_t *histogram;
    int64_t n = 0;
    int rc = get_integer(&n, l->root, "requests", err);
    if (!rc && n < 1)
        rc = dsc_fail(err, DSC_EINPUT, "'requests' is 0; a line needs at least one request");
    if (!rc)
        rc = get(&histogram, l->root, DSC_COL_REQUEST_ACCEPT_HISTOGRAM, err);
    if (rc)
        return rc;
    const size_t all = json_array_size(histogram), length = all / (size_t)n;
    if (!length || all % (size_t)n)
        return dsc_fail(err, DSC_EINPUT,
                        "'request_accept_histogram' has %zu numbers, which is not a multiple of "
                        "the %" PRId64 " requests",
                        all, n);
    l->baseline = json_object_get(l->root, names[VALIDATE_PLAIN_TIME]) != NULL;
    const int lists = l->baseline ? VALIDATE_LISTS : VALIDATE_PLAIN_TOKENS;
    const bool sampled = l->temperature > 0 && !l->trace_hash;
    rc = validate_requests_init(r, (size_t)n, length, lists, err);
    for (int i = 0; i < lists && !rc; i++)
        if ((i != VALIDATE_NLL && i != VALIDATE_ENTROPY) || sampled)
            rc = get_list(r->list[i], r->requests, l->root, names[i], err);
    return rc ? rc : get_list(r->histogram, all, l->root, DSC_COL_REQUEST_ACCEPT_HISTOGRAM, err);
}

// Reads an optional list of counts into `room`.
static int read_cells(int64_t **out, int64_t *length, json_t *list, int64_t *room, const char *name,
                      dsc_error *err)
{
    *length = (int64_t)json_array_size(list);
    *out = *length ? room : NULL;
    for (int64_t i = 0; i < *length; i++) {
        json_t *e = json_array_get(list, (size_t)i);
        room[i] = json_integer_value(e);
        if (!json_is_integer(e) || room[i] < 0)
            return dsc_fail(err, DSC_EINPUT, "'%s' is not a list of counts", name);
    }
    return DSC_OK;
}

// Reads the totals and the histograms of the widths of the passes.
static int read_counts(validate_line *l, dsc_error *err)
{
    dsc_counts *c = &l->counts;
    const struct {
        const char *name;
        int64_t *to;
    } total[] = {{DSC_COL_REQUESTS, &c->requests},
                 {DSC_COL_OUTPUT_TOKENS, &c->output_tokens},
                 {DSC_COL_TARGET_CALLS, &c->target_calls},
                 {DSC_COL_NUM_DRAFTS_STARTED, &c->num_drafts_started},
                 {DSC_COL_NUM_DRAFTS, &c->num_drafts},
                 {DSC_COL_NUM_DRAFT_TOKENS, &c->num_draft_tokens},
                 {DSC_COL_NUM_ACCEPTED_TOKENS, &c->num_accepted_tokens},
                 {DSC_COL_DRAFT_CALLS, &c->draft_calls},
                 {DSC_COL_DRAFT_CALL_TOKENS, &c->draft_call_tokens},
                 {DSC_COL_TARGET_CALL_TOKENS, &c->target_call_tokens},
                 {DSC_COL_TARGET_CALL_CONTEXT, &c->target_call_context},
                 {DSC_COL_OUTPUT_CONTEXT, &c->output_context}};
    static const char *const lists[] = {DSC_COL_ACCEPT_HISTOGRAM, DSC_COL_WIDTH_HISTOGRAM,
                                        DSC_COL_OVERLAP_HISTOGRAM};
    json_t *list[3];
    size_t cells = 1;
    int64_t *room, squares = 0;
    for (int i = 0; i < 3; i++) {
        list[i] = json_object_get(l->root, lists[i]);
        cells += json_array_size(list[i]);
    }
    int rc = dsc_new(&room, cells, err);
    if (rc)
        return rc;
    rc = read_cells(&c->histogram, &c->histogram_length, list[0], room, lists[0], err);
    c->histogram = room; // owns the memory of all three lists, also where it is empty itself
    if (!rc)
        rc = read_cells(&c->width, &c->width_length, list[1], room + c->histogram_length, lists[1],
                        err);
    if (!rc)
        rc = read_cells(&c->parallel_steps, &squares, list[2],
                        room + c->histogram_length + c->width_length, lists[2], err);
    c->parallel_length = (int64_t)llround(sqrt((double)squares));
    if (!rc && c->parallel_length * c->parallel_length != squares)
        rc = dsc_fail(err, DSC_EINPUT, "'%s' is not square", lists[2]);
    for (size_t i = 0; i < sizeof total / sizeof *total && !rc; i++)
        rc = get_integer(total[i].to, l->root, total[i].name, err);
    if (!rc)
        rc = get_real(&l->draft_s, l->root, "draft_s", err);
    return rc ? rc : get_real(&l->verify_s, l->root, "verify_s", err);
}

// --- a file --------------------------------------------------------------------------------------

static int read_line(validate_line *l, const char *text, dsc_error *err)
{
    static const char not_a_line[] = "not a line of live run --json";
    int64_t schema = 0, interrupted = 0;
    int rc = dsc_json_parse(&l->root, text, strlen(text), 0, not_a_line, err);
    if (rc)
        return rc;
    if (!json_is_object(l->root))
        return dsc_fail(err, DSC_EINPUT, "%s: no object", not_a_line);
    if (json_object_get(l->root, "output") && json_object_get(l->root, "prompt"))
        return dsc_fail(
            err, DSC_EINPUT,
            "this is a generated text (live run --output); results are printed by live run --json");
    rc = get_integer(&schema, l->root, "schema", err);
    if (!rc && schema != SCHEMA)
        rc = dsc_fail(err, DSC_EINPUT,
                      "schema %" PRId64 " is not supported; this version reads schema %d", schema,
                      SCHEMA);
    if (!rc)
        rc = get_integer(&interrupted, l->root, "interrupted", err);
    if (!rc && interrupted)
        rc = dsc_fail(err, DSC_EINPUT,
                      "the run was interrupted; remove the line, or repeat the run");
    if (!rc)
        rc = read_config(l, err);
    if (!rc)
        rc = read_sampling(l, err);
    if (!rc)
        rc = read_models(l, err);
    if (!rc)
        rc = read_requests(l, err);
    return rc ? rc : read_counts(l, err);
}

static int add_line(validate_results *r, size_t number, const char *text, dsc_error *err)
{
    int rc = dsc_resize(&r->line, &r->capacity, r->count + 1, err);
    if (rc)
        return rc;
    validate_line *l = &r->line[r->count++]; // freed with the others, also after an error
    *l = (validate_line){.number = number};
    rc = read_line(l, text, err);
    if (rc && rc != DSC_ENOMEM)
        rc = err->status = DSC_EINPUT; // an invalid parameter is an error of the file here
    return rc ? dsc_error_prefix(err, rc, "%s:%zu", r->path, number) : DSC_OK;
}

int validate_results_read(validate_results *r, const char *path, dsc_error *err)
{
    char *text, *rest;
    size_t number = 0;
    *r = (validate_results){.path = path};
    int rc = dsc_read_text(&text, path, MAX_BYTES, err);
    if (rc)
        return rc;
    rest = text;
    for (char *line; !rc && (line = strsep(&rest, "\n"));) {
        number++;
        if (line[strspn(line, " \t\r")])
            rc = add_line(r, number, line, err);
    }
    free(text);
    if (!rc && !r->count)
        rc = dsc_fail(err, DSC_EINPUT, "%s: the file is empty; lines of live run --json expected",
                      path);
    return rc;
}

void validate_results_fini(validate_results *r)
{
    for (size_t i = 0; i < r->count; i++) {
        validate_line *l = &r->line[i];
        dsc_config_fini(&l->config);
        validate_requests_fini(&l->requests);
        free(l->counts.histogram);
        json_decref(l->root);
    }
    free(r->line);
    *r = (validate_results){0};
}

// --- configurations ------------------------------------------------------------------------------

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

bool validate_same(const validate_line *a, const validate_line *b)
{
    const dsc_drafter_type *d = a->config.drafter;
    bool same = d == b->config.drafter && a->rule == b->rule && a->temperature == b->temperature &&
                a->requests.requests == b->requests.requests &&
                a->first_request == b->first_request && !a->trace_hash == !b->trace_hash;
    for (size_t o = 0; same && o < d->option_count; o++)
        same = a->config.parameter[o] == b->config.parameter[o] &&
               a->config.real[o] == b->config.real[o] &&
               same_text(a->config.text[o], b->config.text[o]);
    return same;
}

// Writes the value of a parameter as its option takes it; returns whether it is the default.
static bool parameter_text(const dsc_config *config, size_t o, char *out, size_t size)
{
    const dsc_option *option = &config->drafter->option[o];
    char number[DSC_NUMBER_TEXT];
    switch (option->kind) {
    case DSC_OPTION_TEXT:
        snprintf(out, size, "%s", config->text[o] ? config->text[o] : "");
        return same_text(out, option->initial);
    case DSC_OPTION_REAL:
        dsc_number_text(config->real[o], number);
        snprintf(out, size, "%s", number);
        return option->initial && strtod(option->initial, NULL) == config->real[o];
    default:
        dsc_option_text(option, config->parameter[o], out, size);
        return option->initial && strcmp(out, option->initial) == 0;
    }
}

int validate_parameters(char **out, const dsc_config *config, dsc_error *err)
{
    const dsc_drafter_type *d = config->drafter;
    dsc_buffer b = {0};
    char value[256];
    size_t shown = d->option_count;
    int rc = dsc_buffer_puts(&b, "", err);
    for (size_t o = 0; o < d->option_count && !rc; o++)
        if (!parameter_text(config, o, value, sizeof value))
            rc = dsc_buffer_printf(&b, err, "%s%s=%s", b.length ? " " : "", d->option[o].name,
                                   value);
    for (size_t o = d->option_count; o-- > 0;)
        if (d->option[o].length || strcmp(d->option[o].name, "num-speculative-tokens") == 0)
            shown = o;
    if (!rc && !b.length && d->option_count) {
        shown = shown < d->option_count ? shown : 0;
        parameter_text(config, shown, value, sizeof value);
        rc = dsc_buffer_printf(&b, err, "%s=%s", d->option[shown].name, value);
    }
    if (!rc && !b.length)
        rc = dsc_buffer_puts(&b, "-", err);
    *out = b.data;
    return rc;
}
