// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a JSON string: valid UTF-8 is kept, otherwise non-ASCII bytes become '?'.
#include "base/json_text.h"

#include <stdlib.h>
#include <string.h>

json_t *dsc_json_text(const char *s)
{
    json_t *j = json_string(s ? s : "");
    char *copy = j ? NULL : strdup(s);
    for (char *p = copy; p && *p; p++)
        if (*p & 0x80)
            *p = '?';
    if (copy)
        j = json_string(copy);
    free(copy);
    return j;
}
