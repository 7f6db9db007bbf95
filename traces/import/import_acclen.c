// SPDX-License-Identifier: Apache-2.0
// Reads accept lengths at every output position, one object per line:
//   {"id": ..., "prompt_token_ids": [ID, ...], "generated_token_ids": [ID, ...],
//    "acc_NAME": {"acc_len": [N, ...]}, ...}        or "acc_NAME": [N, ...], or "acc": {...}
// acc_len[j] is the number of tokens that the step starting at output token j writes, the bonus
// token INCLUDED, so a draft of drafter NAME has N - 1 tokens accepted there. The longest draft is
// not stored: the cap of a drafter is the largest N - 1 of the whole input (at least 1), which is
// therefore read twice.
//
// The public files are data/llama3.1-8B/combined_*.jsonl of github.com/SpecDecode-Bench/simulator
// at commit 2fdccbd (Liu et al. 2026, arXiv:2601.11580), fields as in its request.py. Their element
// j belongs to output token j: an n-gram lookup (3 to 7 tokens, drafts of 20) over the tokens gives
// 99.8 to 99.98 percent of the elements of acc_ngram, and 60 to 78 percent when they are moved by
// one; the lists of EAGLE begin with 1, the prefill, and end with the list. The program's own
// reader (simulator.py, get_step_gen_len) uses element cur_gen_len - 1 for a step that starts at
// output token cur_gen_len; semantics "code" does so too.
//
// A list has another length than the output where its drafter was run apart and the outputs
// diverged. As in request.py (generated_len of combined drafters), a request then ends with its
// shortest list.
#include "traces/import/import_record.h"

#include <inttypes.h>
#include <string.h>

static const char prefix[] = "acc_";
enum { PREFIX = sizeof prefix - 1, FIELD = 80 };

// The drafters of the input and their caps; and the requests with a list that is not as long as the
// output, the output tokens that these lose, and the elements after the output.
typedef struct caps {
    int32_t drafters;
    dsc_drafter_record drafter[DSC_DRAFTERS_MAX];
    int64_t requests, unequal, lost, beyond;
} caps;

static int probe(const json_t *line)
{
    return 2 * (json_object_get(line, "prompt_token_ids") != NULL) +
           2 * (json_object_get(line, "generated_token_ids") != NULL);
}

// The drafter's name of a field "acc_NAME" or "acc" that has accept lengths; NULL: another field.
static const char *drafter_name(const char *key, const json_t *value, const json_t **lengths)
{
    *lengths = json_is_array(value) ? value : json_object_get(value, "acc_len");
    if (!*lengths)
        return NULL;
    return strncmp(key, prefix, PREFIX) == 0 ? key + PREFIX : strcmp(key, "acc") == 0 ? key : NULL;
}

// The tokens of a request that has `n`: as many as its shortest list has elements. *beyond: the
// elements of longer lists after the output.
static size_t common_length(const json_t *line, size_t n, size_t *beyond)
{
    const char *key;
    json_t *value;
    size_t shortest = n;
    *beyond = 0;
    json_object_foreach((json_t *)line, key, value)
    {
        const json_t *lengths;
        if (!drafter_name(key, value, &lengths) || !json_is_array(lengths))
            continue;
        const size_t elements = json_array_size(lengths);
        shortest = elements < shortest ? elements : shortest;
        *beyond += elements > n ? elements - n : 0;
    }
    return shortest;
}

// --- caps --------------------------------------------------------------------------------------

// The cap of `name`, which is added if there is room. NULL: no room, or an invalid name; the import
// itself reports both.
static int32_t *find_cap(caps *c, const char *name)
{
    for (int32_t i = 0; i < c->drafters; i++)
        if (strcmp(c->drafter[i].name, name) == 0)
            return &c->drafter[i].cap;
    if (c->drafters == DSC_DRAFTERS_MAX || strlen(name) >= DSC_DRAFTER_NAME_BYTES)
        return NULL;
    dsc_drafter_record *d = &c->drafter[c->drafters++];
    memcpy(d->name, name, strlen(name) + 1);
    d->cap = 1;
    return &d->cap;
}

static void scan_line(void *state, const json_t *line)
{
    const char *key;
    json_t *value;
    caps *c = state;
    const size_t n = json_array_size(json_object_get(line, "generated_token_ids"));
    size_t beyond;
    const size_t lost = n - common_length(line, n, &beyond);
    c->requests++;
    c->unequal += lost || beyond;
    c->lost += (int64_t)lost;
    c->beyond += (int64_t)beyond;
    json_object_foreach((json_t *)line, key, value)
    {
        const json_t *lengths;
        const char *name = drafter_name(key, value, &lengths);
        int32_t *cap = name ? find_cap(c, name) : NULL;
        for (size_t j = 0; cap && j < json_array_size(lengths); j++) {
            int64_t accepted;
            if (dsc_import_accepted(&accepted, lengths, j, key, NULL) == DSC_OK && accepted > *cap)
                *cap = (int32_t)accepted;
        }
    }
}

static int prepare(void **state, const char *const *paths, size_t count, char note[DSC_IMPORT_NOTE],
                   dsc_error *err)
{
    caps *c;
    int rc = dsc_new(&c, 1, err);
    *state = c;
    for (size_t i = 0; i < count && !rc; i++)
        rc = dsc_import_rereadable(paths[i])
                 ? dsc_import_scan(paths[i], scan_line, c, err)
                 : dsc_fail(err, DSC_EUSAGE,
                            "%s: the format acclen reads its input twice, so it must be a file",
                            paths[i]);
    int at = snprintf(
        note, DSC_IMPORT_NOTE,
        "the source does not store draft lengths; the cap of a drafter is its largest accepted "
        "count");
    if (!rc && c->unequal)
        snprintf(note + at, (size_t)(DSC_IMPORT_NOTE - at),
                 "; in %" PRId64 " of %" PRId64 " requests a list is not as long as the output, so "
                 "its drafter ran along another one: these outputs end with their shortest list "
                 "(%" PRId64 " tokens less), %" PRId64 " lengths after the outputs are left out, "
                 "and their metadata have \"lists\": \"differ\"",
                 c->unequal, c->requests, c->lost, c->beyond);
    return rc;
}

// --- a line ------------------------------------------------------------------------------------

// `shift`: the place of a length in the list is before that of its output token.
static int read_drafter(const json_t *lengths, const char *name, const caps *c, size_t shift,
                        dsc_import_record *out, dsc_error *err)
{
    int32_t cap = 1;
    int column;
    const size_t n = out->output.tokens.count;
    void *data;
    char field[FIELD];
    snprintf(field, sizeof field, "acc_%.64s.acc_len", name);
    for (int32_t i = 0; i < c->drafters; i++)
        if (strcmp(c->drafter[i].name, name) == 0)
            cap = c->drafter[i].cap;
    if (!json_is_array(lengths))
        return dsc_import_wrong_type(lengths, "an array", err, "%s", field);
    int rc = dsc_import_add_drafter(out, name, cap, &column, err);
    if (!rc)
        rc = dsc_import_column_start(out, column, n, &data, err);
    for (size_t j = 0; j < n && !rc; j++) {
        int64_t accepted = 0;
        if (j >= shift)
            rc = dsc_import_accepted(&accepted, lengths, j - shift, field, err);
        if (!rc)
            ((uint16_t *)data)[j] = (uint16_t)accepted;
    }
    return rc;
}

// Cuts the output to its shortest list and notes in the metadata whether one had another length.
static int cut_output(const json_t *line, dsc_import_record *out, dsc_error *err)
{
    const size_t n = out->output.tokens.count;
    size_t beyond;
    const size_t kept = common_length(line, n, &beyond);
    if (n && !kept)
        return dsc_fail(err, DSC_EINPUT,
                        "a list of accept lengths is empty, but the output has %zu "
                        "tokens",
                        n);
    out->output.tokens.count = kept;
    out->kept = json_pack("{s:s}", "lists", kept < n || beyond ? "differ" : "equal");
    return out->kept ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
}

static int read_line(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                     dsc_error *err)
{
    const json_t *id = json_object_get(line, "id");
    const char *key;
    json_t *value;
    size_t drafters = 0;
    const size_t shift = strcmp(options->semantics, "code") == 0;
    int rc = id ? dsc_import_id(out, id, err) : DSC_OK;
    if (!rc)
        rc = dsc_import_token_ids(json_object_get(line, "prompt_token_ids"), options->vocab_size,
                                  "prompt_token_ids", &out->prompt, err);
    if (!rc)
        rc = dsc_import_token_ids(json_object_get(line, "generated_token_ids"), options->vocab_size,
                                  "generated_token_ids", &out->output, err);
    if (!rc)
        rc = cut_output(line, out, err);
    if (rc)
        return rc;
    json_object_foreach((json_t *)line, key, value)
    {
        const json_t *lengths;
        const char *name = drafter_name(key, value, &lengths);
        drafters += name != NULL;
        if (name && (rc = read_drafter(lengths, name, options->prepared, shift, out, err)))
            return rc;
    }
    if (drafters == 0)
        return dsc_fail(err, DSC_EINPUT,
                        "a field 'acc_NAME' with accept lengths 'acc_len' is missing");
    return DSC_OK;
}

const dsc_import_driver dsc_import_acclen = {
    .name = "acclen",
    .summary = "accept lengths per position: token ids and acc_NAME.acc_len[]",
    .probe = probe,
    .read = read_line,
    .prepare = prepare,
};
