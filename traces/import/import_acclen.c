// SPDX-License-Identifier: Apache-2.0
// Reads accept lengths at every output position, one object per line:
//   {"id": ..., "prompt_token_ids": [ID, ...], "generated_token_ids": [ID, ...],
//    "acc_NAME": {"acc_len": [N, ...]}, ...}
// acc_len[j] is the number of tokens that the step starting at output token j writes, the bonus
// token INCLUDED, so a draft of drafter NAME has N - 1 tokens accepted there. The longest draft is
// not stored: the cap of a drafter is the largest N - 1 of the whole input (at least 1), which is
// therefore read twice.
#include "traces/import/import_record.h"

#include <string.h>

static const char prefix[] = "acc_";
enum { PREFIX = sizeof prefix - 1, FIELD = 80 };

// The drafters of the input and their caps.
typedef struct caps {
    int32_t drafters;
    dsc_drafter_record drafter[DSC_DRAFTERS_MAX];
} caps;

static int probe(const json_t *line)
{
    return 2 * (json_object_get(line, "prompt_token_ids") != NULL) +
           2 * (json_object_get(line, "generated_token_ids") != NULL);
}

// The drafter's name of a field "acc_NAME" that has accept lengths; NULL: another field.
static const char *drafter_name(const char *key, const json_t *value, const json_t **lengths)
{
    *lengths = json_object_get(value, "acc_len");
    return strncmp(key, prefix, PREFIX) == 0 && *lengths ? key + PREFIX : NULL;
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

static void raise_caps(void *state, const json_t *line)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)line, key, value)
    {
        const json_t *lengths;
        const char *name = drafter_name(key, value, &lengths);
        int32_t *cap = name ? find_cap(state, name) : NULL;
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
                 ? dsc_import_scan(paths[i], raise_caps, c, err)
                 : dsc_fail(err, DSC_EUSAGE,
                            "%s: the format acclen reads its input twice, so it must be a file",
                            paths[i]);
    snprintf(
        note, DSC_IMPORT_NOTE,
        "the source does not store draft lengths; the cap of a drafter is its largest accepted "
        "count");
    return rc;
}

// --- a line ------------------------------------------------------------------------------------

static int read_drafter(const json_t *lengths, const char *name, const caps *c,
                        dsc_import_record *out, dsc_error *err)
{
    int32_t cap = 1;
    int column;
    size_t n = json_array_size(lengths);
    void *data;
    char field[FIELD];
    snprintf(field, sizeof field, "acc_%.64s.acc_len", name);
    for (int32_t i = 0; i < c->drafters; i++)
        if (strcmp(c->drafter[i].name, name) == 0)
            cap = c->drafter[i].cap;
    if (!json_is_array(lengths))
        return dsc_import_wrong_type(lengths, "an array", err, "%s", field);
    if (n != out->output.tokens.count)
        return dsc_fail(err, DSC_EINPUT,
                        "field '%s' has %zu numbers, but the output has %zu tokens", field, n,
                        out->output.tokens.count);
    int rc = dsc_import_add_drafter(out, name, cap, &column, err);
    if (!rc)
        rc = dsc_import_column_start(out, column, n, &data, err);
    for (size_t j = 0; j < n && !rc; j++) {
        int64_t accepted = 0;
        rc = dsc_import_accepted(&accepted, lengths, j, field, err);
        if (!rc)
            ((uint16_t *)data)[j] = (uint16_t)accepted;
    }
    return rc;
}

static int read_line(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                     dsc_error *err)
{
    const json_t *id = json_object_get(line, "id");
    const char *key;
    json_t *value;
    size_t drafters = 0;
    int rc = id ? dsc_import_id(out, id, err) : DSC_OK;
    if (!rc)
        rc = dsc_import_token_ids(json_object_get(line, "prompt_token_ids"), options->vocab_size,
                                  "prompt_token_ids", &out->prompt, err);
    if (!rc)
        rc = dsc_import_token_ids(json_object_get(line, "generated_token_ids"), options->vocab_size,
                                  "generated_token_ids", &out->output, err);
    if (rc)
        return rc;
    json_object_foreach((json_t *)line, key, value)
    {
        const json_t *lengths;
        const char *name = drafter_name(key, value, &lengths);
        drafters += name != NULL;
        if (name && (rc = read_drafter(lengths, name, options->prepared, out, err)))
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
