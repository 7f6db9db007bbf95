// SPDX-License-Identifier: Apache-2.0
// The cost model of draftscope advise for an engine: a roofline has that engine's shares and
// overheads.
#include "cli/advise/advise.h"
#include "sim/cost/roofline.h"

#include <string.h>

int cli_advise_preset(dsc_buffer *cost, const char *engine, const char **instead, dsc_error *err)
{
    size_t count;
    const dsc_engine *preset = dsc_engines(&count);
    *instead = NULL;
    if (strncmp(cost->data, "roofline:", 9) != 0 || strstr(cost->data, ",engine="))
        return DSC_OK;
    for (size_t i = 0; i < count; i++)
        if (strcmp(preset[i].name, engine) == 0)
            return dsc_buffer_printf(cost, err, ",engine=%s", engine);
    *instead = preset[0].name; // the default
    return DSC_OK;
}
