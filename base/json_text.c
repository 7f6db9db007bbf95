// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a JSON string (valid UTF-8 is kept, otherwise non-ASCII bytes become "?"), and
// JSON as text.
#include "base/json_text.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

json_t *dsc_json_text(const char *s)
{
    const char *text = s ? s : "";
    json_t *j = json_string(text);
    if (j || dsc_bad_utf8(text, (int64_t)strlen(text)) < 0)
        return j; // NULL for valid text: an allocation failed
    char *copy = strdup(text);
    for (char *p = copy; p && *p; p++)
        if (*p & 0x80)
            *p = '?';
    if (copy)
        j = json_string(copy);
    free(copy);
    return j;
}

// Into a buffer of sufficient size Jansson writes without an allocation that it does not check.
char *dsc_json_dump(const json_t *value, size_t flags)
{
    char small[1024];
    const size_t length = json_dumpb(value, small, sizeof small, flags);
    char *text = length ? malloc(length + 1) : NULL;
    if (!text)
        return NULL;
    if (length <= sizeof small)
        memcpy(text, small, length);
    else if (json_dumpb(value, text, length, flags) != length) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

json_t *dsc_json_copy(const json_t *value)
{
    json_t *copy = json_deep_copy(value);
    if (copy && json_equal(copy, value))
        return copy;
    json_decref(copy);
    return NULL;
}
