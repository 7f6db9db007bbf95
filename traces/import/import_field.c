// SPDX-License-Identifier: Apache-2.0
// Messages about fields of the wrong JSON type, and reading strings and integers.
#include "traces/import/import_record.h"

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    default: return "null";
    }
}

static int wrong_type(const json_t *value, const char *expected, dsc_error *err, const char *field,
                      va_list args)
{
    char name[256];
    vsnprintf(name, sizeof name, field, args);
    if (!value)
        return dsc_fail(err, DSC_EINPUT, "field '%s' is missing", name);
    return dsc_fail(err, DSC_EINPUT, "field '%s' must be %s, not %s", name, expected,
                    type_name(value));
}

int dsc_import_not_object(const json_t *line, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT, "the line must be an object, not %s", type_name(line));
}

int dsc_import_wrong_type(const json_t *value, const char *expected, dsc_error *err,
                          const char *field, ...)
{
    va_list args;
    va_start(args, field);
    int rc = wrong_type(value, expected, err, field, args);
    va_end(args);
    return rc;
}

int dsc_import_string(dsc_text_view *out, const json_t *value, dsc_error *err, const char *field,
                      ...)
{
    int rc = DSC_OK;
    if (json_is_string(value)) {
        *out = (dsc_text_view){json_string_value(value), (int64_t)json_string_length(value)};
    } else {
        va_list args;
        va_start(args, field);
        rc = wrong_type(value, "a string", err, field, args);
        va_end(args);
    }
    return rc;
}

int dsc_import_integer(int64_t *out, const json_t *value, int64_t low, int64_t high, dsc_error *err,
                       const char *field, ...)
{
    char name[256];
    va_list args;
    va_start(args, field);
    vsnprintf(name, sizeof name, field, args);
    va_end(args);
    if (!json_is_integer(value))
        return dsc_import_wrong_type(value, "an integer", err, "%s", name);
    const int64_t n = json_integer_value(value);
    if (n < low || n > high)
        return dsc_fail(err, DSC_EINPUT, "field '%s' is %lld; it must be %lld to %lld", name,
                        (long long)n, (long long)low, (long long)high);
    *out = n;
    return DSC_OK;
}

int dsc_import_accepted(int64_t *out, const json_t *lengths, size_t i, const char *field,
                        dsc_error *err)
{
    const json_t *v = json_array_get(lengths, i);
    if (!json_is_integer(v))
        return dsc_import_wrong_type(v, "an integer", err, "%s[%zu]", field, i);
    const int64_t length = json_integer_value(v);
    if (length >= 1 && length <= UINT16_MAX + 1) {
        *out = length - 1;
        return DSC_OK;
    }
    return dsc_fail(err, DSC_EINPUT,
                    "field '%s[%zu]' is %lld; with the bonus token it must be 1 to %d", field, i,
                    (long long)length, UINT16_MAX + 1);
}
