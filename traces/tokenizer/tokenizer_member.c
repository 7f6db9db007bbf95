// SPDX-License-Identifier: Apache-2.0
// Reads members of the objects in a tokenizer.json, with messages that name file and member.
#include "traces/tokenizer/tokenizer_internal.h"

int dsc_tok_bad(const tok_reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = dsc_vfail(r->err, DSC_EINPUT, format, args);
    va_end(args);
    return dsc_error_prefix(r->err, rc, "%s", r->path);
}

json_t *dsc_tok_member(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

int dsc_tok_get_bool(const tok_reader *r, const json_t *object, const char *where, const char *key,
                     int fallback, bool *out)
{
    const json_t *value = dsc_tok_member(object, key);
    *out = value ? json_is_true(value) : fallback == 1;
    if (value ? !json_is_boolean(value) : fallback < 0)
        return dsc_tok_bad(r, "%s.%s must be true or false", where, key);
    return DSC_OK;
}

int dsc_tok_get_text(const tok_reader *r, const json_t *object, const char *where, const char *key,
                     tok_text *out)
{
    const json_t *value = dsc_tok_member(object, key);
    *out = (tok_text){0};
    if (!json_is_string(value))
        return dsc_tok_bad(r, "%s.%s must be a string", where, key);
    *out = (tok_text){json_string_value(value), json_string_length(value)};
    return DSC_OK;
}
