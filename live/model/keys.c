// SPDX-License-Identifier: Apache-2.0
// Reads and checks values of a JSON object. Every failure is DSC_EINPUT with file, key and the
// allowed range.
#include "live/model/keys.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdlib.h>

int live_keys_load(json_t **out, const char *path, size_t limit, dsc_error *err)
{
    char *text;
    size_t length;
    json_error_t e;
    *out = NULL;
    int rc = dsc_check_regular(path, err);
    if (!rc)
        rc = dsc_read_file(&text, &length, path, limit, err);
    if (rc)
        return rc;
    json_t *j = json_loadb(text, length, JSON_REJECT_DUPLICATES, &e);
    free(text);
    if (!j)
        return dsc_fail(err, DSC_EINPUT, "%s:%d: %s", path, e.line, e.text);
    if (!json_is_object(j)) {
        json_decref(j);
        return dsc_fail(err, DSC_EINPUT, "%s: not a JSON object", path);
    }
    *out = j;
    return DSC_OK;
}

json_t *live_key(const live_keys *k, const char *name, const char *other)
{
    json_t *x = json_object_get(k->object, name);
    if ((!x || json_is_null(x)) && other)
        x = json_object_get(k->object, other);
    return json_is_null(x) ? NULL : x;
}

int live_key_count(const live_keys *k, const char *name, const char *other, int64_t least,
                   int64_t most, int64_t absent, int64_t *out, dsc_error *err)
{
    json_t *x = live_key(k, name, other);
    *out = absent;
    if (!x && absent >= least)
        return DSC_OK;
    *out = json_integer_value(x);
    if (json_is_integer(x) && *out >= least && *out <= most)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "%s: '%s%s' %s a whole number from %" PRId64 " to %" PRId64,
                    k->path, k->where, name, x ? "must be" : "is missing; it must be", least, most);
}

int live_key_real(const live_keys *k, const char *name, const char *other, double least,
                  double most, double absent, double *out, dsc_error *err)
{
    json_t *x = live_key(k, name, other);
    *out = absent;
    if (!x && absent >= least)
        return DSC_OK;
    *out = json_number_value(x);
    if (json_is_number(x) && *out >= least && *out <= most)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "%s: '%s%s' %s a number from %g to %g", k->path, k->where,
                    name, x ? "must be" : "is missing; it must be", least, most);
}

int live_key_flag(const live_keys *k, const char *name, bool absent, bool *out, dsc_error *err)
{
    json_t *x = live_key(k, name, NULL);
    *out = x ? json_is_true(x) : absent;
    if (!x || json_is_boolean(x))
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "%s: '%s%s' must be true or false", k->path, k->where, name);
}

int live_key_text(const live_keys *k, const char *name, const char *other, const char *absent,
                  const char **out, dsc_error *err)
{
    json_t *x = live_key(k, name, other);
    *out = x ? json_string_value(x) : absent;
    if (!x || *out)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "%s: '%s%s' must be a string", k->path, k->where, name);
}
