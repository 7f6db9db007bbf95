// SPDX-License-Identifier: Apache-2.0
// Reads totals from SGLang's responses: JSON with meta_info (at the top for /generate, in
// choices[0] for the OpenAI routes), one per line, or a list of them. Fields of meta_info, the
// newest name first:
//   spec_verify_ct                                             drafts verified (required)
//   completion_tokens                                          tokens of the output
//   spec_num_correct_drafts, spec_accepted_drafts, spec_accept_token_num    accepted, no bonus
//   spec_num_proposed_drafts, spec_proposed_drafts, spec_draft_token_num    drafted
//   spec_correct_drafts_histogram, spec_accept_histogram       drafts with 0, 1, ... accepted
//   tokens spec_accept_length                                         tokens per draft, bonus
//   included
// Check: the histogram [11, 14, 11, 4, 0, 3] is 43 drafts, 63 accepted, 106 tokens.
// Source: sglang/srt/managers/tokenizer_manager.py.
#include "traces/import/import_record.h"
#include "traces/import/import_source.h"
#include "traces/import/totals.h"

#include <math.h>
#include <string.h>

enum { NAMES_MAX = 3, HISTOGRAM_MAX = 1 << 16 };

static const char *const accepted_names[NAMES_MAX] = {
    "spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num"};
static const char *const drafted_names[NAMES_MAX] = {
    "spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num"};
static const char *const histogram_names[NAMES_MAX] = {"spec_correct_drafts_histogram",
                                                       "spec_accept_histogram"};

static int read_count(const json_t *value, const char *field, int64_t *out, dsc_error *err)
{
    if (!json_is_integer(value))
        return dsc_import_wrong_type(value, "an integer", err, "meta_info.%s", field);
    if (json_integer_value(value) < 0 || json_integer_value(value) > INT64_C(1) << 53)
        return dsc_fail(err, DSC_EINPUT, "field 'meta_info.%s' is %lld; it must be 0 to 2^53",
                        field, (long long)json_integer_value(value));
    *out = json_integer_value(value);
    return DSC_OK;
}

// The value of the first name that is present and not null, or NULL. *name is that name, or the
// first one.
static const json_t *find_field(const json_t *info, const char *const names[NAMES_MAX],
                                const char **name)
{
    *name = names[0];
    for (size_t i = 0; i < NAMES_MAX && names[i]; i++) {
        const json_t *value = json_object_get(info, names[i]);
        if (value && !json_is_null(value)) {
            *name = names[i];
            return value;
        }
    }
    return NULL;
}

// Reads a count under any of its names; values under several names must be equal.
static int read_alias(const json_t *info, const char *const names[NAMES_MAX], int64_t *out,
                      dsc_error *err)
{
    const char *name;
    const json_t *value = find_field(info, names, &name);
    int rc = value ? read_count(value, name, out, err) : DSC_OK;
    for (size_t i = 0; i < NAMES_MAX && value && !rc; i++) {
        const json_t *other = json_object_get(info, names[i]);
        if (other && !json_is_null(other) && !json_equal(other, value))
            rc = dsc_fail(err, DSC_EINPUT, "fields 'meta_info.%s' and 'meta_info.%s' differ", name,
                          names[i]);
    }
    return rc;
}

static int read_histogram(const json_t *info, dsc_totals *t, dsc_error *err)
{
    const char *name;
    const json_t *array = find_field(info, histogram_names, &name);
    int rc = DSC_OK;
    for (size_t m = 0; m < t->histogram_length && !rc; m++)
        rc = read_count(json_array_get(array, m), name, &t->histogram[m], err);
    return rc;
}

// Older versions report only spec_accept_length. No count is derived from this rounded mean, but it
// must not contradict the counts. It is tokens / drafts in older versions and 1 + accepted / drafts
// in newer ones; these differ by the first token and by the tokens cut off the last step.
static int check_length(const json_t *value, const dsc_totals *t, dsc_error *err)
{
    if (!value || json_is_null(value) || t->drafts == 0)
        return DSC_OK;
    if (!json_is_number(value))
        return dsc_import_wrong_type(value, "a number", err, "meta_info.spec_accept_length");
    double given = json_number_value(value), n = (double)t->drafts;
    double low = INFINITY, high = -INFINITY, slack = 1e-3 * given + 1 / n;
    if (t->accepted >= 0)
        low = high = 1 + (double)t->accepted / n;
    if (t->output_tokens >= 0) {
        low = fmin(low, (double)t->output_tokens / n);
        high = fmax(high, (double)t->output_tokens / n);
    }
    if (low > high || (given >= low - slack && given <= high + slack))
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "field 'meta_info.spec_accept_length' is %g, but the counts give %g", given,
                    low);
}

static int read_info(const json_t *info, dsc_totals *t, dsc_error *err)
{
    const json_t *tokens = json_object_get(info, "completion_tokens");
    int rc = read_count(json_object_get(info, "spec_verify_ct"), "spec_verify_ct", &t->drafts, err);
    if (!rc && tokens && !json_is_null(tokens))
        rc = read_count(tokens, "completion_tokens", &t->output_tokens, err);
    if (!rc)
        rc = read_alias(info, accepted_names, &t->accepted, err);
    if (!rc)
        rc = read_alias(info, drafted_names, &t->drafted, err);
    if (!rc)
        rc = read_histogram(info, t, err);
    if (!rc)
        rc = dsc_totals_check(t, err);
    return rc ? rc : check_length(json_object_get(info, "spec_accept_length"), t, err);
}

static const json_t *find_info(const json_t *response)
{
    const json_t *info = json_object_get(response, "meta_info");
    if (!info)
        info =
            json_object_get(json_array_get(json_object_get(response, "choices"), 0), "meta_info");
    return info;
}

static int read_response(dsc_totals_list *out, const json_t *response, dsc_error *err)
{
    const json_t *info = find_info(response), *id = json_object_get(info, "id");
    char number[32];
    const char *name;
    if (!json_is_object(info))
        return dsc_import_wrong_type(info, "an object", err, "meta_info");
    const json_t *histogram = find_field(info, histogram_names, &name);
    if (histogram && (!json_is_array(histogram) || json_array_size(histogram) > HISTOGRAM_MAX))
        return dsc_fail(err, DSC_EINPUT,
                        "field 'meta_info.%s' must be an array of at most %d counts", name,
                        HISTOGRAM_MAX);
    snprintf(number, sizeof number, "%zu", out->count);
    dsc_totals *t;
    int rc = dsc_totals_add(out, json_is_string(id) ? json_string_value(id) : number,
                            json_array_size(histogram), &t, err);
    if (rc)
        return rc;
    return read_info(info, t, err);
}

// Reads a line or an element of the document's list: a response, or a list of them (a batch).
static int read_value(dsc_totals_list *out, const dsc_line *line, const char *name, dsc_error *err)
{
    json_t *json;
    int rc = dsc_import_parse(&json, line, name, err);
    if (rc)
        return rc;
    size_t n = json_is_array(json) ? json_array_size(json) : 1, before = out->count;
    for (size_t i = 0; i < n && !rc; i++)
        rc = read_response(out, json_is_array(json) ? json_array_get(json, i) : json, err);
    if (rc)
        dsc_error_prefix(err, rc, "%s:%lld", name, (long long)line->number);
    while (rc && out->count > before) // a bad line is skipped as a whole
        dsc_totals_drop(out);
    json_decref(json);
    return rc;
}

static int read_file(dsc_totals_list *out, const char *path, const dsc_totals_options *options,
                     dsc_error *err)
{
    dsc_import_source source = {0};
    int rc = dsc_input_open(&source.in, path, err);
    while (!rc) {
        dsc_line line;
        rc = dsc_import_source_next(&source, true, &line, err);
        if (!rc && !line.bytes)
            break;
        if (!rc)
            rc = read_value(out, &line, dsc_input_name(source.in), err);
        if (rc == DSC_EINPUT && options->skip_errors && !dsc_import_source_broken(&source)) {
            if (options->skipped)
                options->skipped(options->user, err->message);
            out->left_out++;
            rc = DSC_OK;
        }
    }
    dsc_import_source_fini(&source);
    dsc_input_close(source.in);
    return rc;
}

static int read_files(dsc_totals_list *out, const char *const *paths, size_t count,
                      const dsc_totals_options *options, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc; i++)
        rc = read_file(out, paths[i], options, err);
    return rc;
}

static bool probe(const char *line, size_t length)
{
    static const char field[] = "\"spec_verify_ct\"";
    return length && (*line == '{' || *line == '[') &&
           memmem(line, length, field, sizeof field - 1);
}

const dsc_totals_driver dsc_totals_sglang = {
    .name = "sglang",
    .summary = "SGLang's responses with meta_info.spec_* (imported as a table)",
    .probe = probe,
    .read = read_files,
};
