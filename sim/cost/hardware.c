// SPDX-License-Identifier: Apache-2.0
// Presets and machines by name.
#include "sim/cost/hardware.h"

#include "base/memory.h"
#include "base/option.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

// The name is the first member.
static const char *name_of(dsc_preset_table table, size_t i)
{
    return *(const char *const *)((const char *)table.row + i * table.size);
}

int dsc_preset_find(size_t *at, const char *what, dsc_preset_table table, const char *text,
                    dsc_error *err)
{
    const char **name;
    for (*at = 0; *at < table.count; ++*at)
        if (strcasecmp(text, name_of(table, *at)) == 0)
            return DSC_OK;
    int rc = dsc_new(&name, table.count, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < table.count; i++)
        name[i] = name_of(table, i);
    rc =
        dsc_unknown_name(what, text, name, table.count, "draftscope list costs -v shows them", err);
    free(name);
    return rc;
}

int dsc_hardware_find(dsc_hardware *out, const char *text, dsc_error *err)
{
    size_t count, at;
    const dsc_hardware *h = dsc_hardware_presets(&count);
    for (at = 0; at < count; at++)
        if (h[at].also && strcasecmp(text, h[at].also) == 0)
            text = h[at].name;
    int rc = dsc_preset_find(&at, "hardware", (dsc_preset_table){h, sizeof *h, count}, text, err);
    if (!rc)
        *out = h[at];
    return rc;
}

double dsc_hardware_peak(const dsc_hardware *h, const dsc_number_format *format)
{
    const double peak = h->peak[format->math];
    return peak > 0 ? peak : h->peak[DSC_MATH_16];
}
