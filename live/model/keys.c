// SPDX-License-Identifier: Apache-2.0
// Reads and checks values of a JSON object. Every failure is DSC_EINPUT with file, key and the
// allowed range.
#include "live/model/keys.h"

#include "base/file.h"
#include "base/json_file.h"

#include <inttypes.h>
#include <stdarg.h>

int live_keys_load(live_keys *out, const char *path, size_t limit, dsc_error *err)
{
    *err = (dsc_error){0};
    *out = (live_keys){.path = path, .where = "", .err = err};
    int rc = dsc_check_regular(path, err);
    if (!rc)
        rc = dsc_json_file(&out->object, path, limit, err);
    if (rc)
        return rc;
    return json_is_object(out->object) ? DSC_OK : live_key_fail(out, "not a JSON object");
}

json_t *live_key(const live_keys *k, const char *name, const char *other)
{
    json_t *x = json_object_get(k->object, name);
    if ((!x || json_is_null(x)) && other)
        x = json_object_get(k->object, other);
    return json_is_null(x) ? NULL : x;
}

int live_key_fail(const live_keys *k, const char *format, ...)
{
    va_list args;
    if (k->err->status)
        return k->err->status;
    va_start(args, format);
    dsc_vfail(k->err, DSC_EINPUT, format, args);
    va_end(args);
    return dsc_error_prefix(k->err, DSC_EINPUT, "%s", k->path);
}

int64_t live_key_count(const live_keys *k, const char *name, const char *other, int64_t least,
                       int64_t most, int64_t absent)
{
    json_t *x = live_key(k, name, other);
    const int64_t value = json_integer_value(x);
    if (!x && absent >= least)
        return absent;
    if (json_is_integer(x) && value >= least && value <= most)
        return value;
    live_key_fail(k, "'%s%s' %s a whole number from %" PRId64 " to %" PRId64, k->where, name,
                  x ? "must be" : "is missing; it must be", least, most);
    return least;
}

double live_key_real(const live_keys *k, const char *name, const char *other, double least,
                     double most, double absent)
{
    json_t *x = live_key(k, name, other);
    const double value = json_number_value(x);
    if (!x && absent >= least)
        return absent;
    if (json_is_number(x) && value >= least && value <= most)
        return value;
    live_key_fail(k, "'%s%s' %s a number from %g to %g", k->where, name,
                  x ? "must be" : "is missing; it must be", least, most);
    return least;
}

bool live_key_flag(const live_keys *k, const char *name, bool absent)
{
    json_t *x = live_key(k, name, NULL);
    if (x && !json_is_boolean(x))
        live_key_fail(k, "'%s%s' must be true or false", k->where, name);
    return x ? json_is_true(x) : absent;
}

const char *live_key_text(const live_keys *k, const char *name, const char *other,
                          const char *absent)
{
    json_t *x = live_key(k, name, other);
    if (x && !json_is_string(x))
        live_key_fail(k, "'%s%s' must be a string", k->where, name);
    return json_is_string(x) ? json_string_value(x) : absent;
}
