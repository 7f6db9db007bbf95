// SPDX-License-Identifier: Apache-2.0
// The list of import drivers, and the choice of the one that matches a line best.
#include "traces/import/import_record.h"

#include <string.h>

static const dsc_import_driver *const drivers[] = {
    &dsc_import_llma,  &dsc_import_specbench, &dsc_import_mtbench,
    &dsc_import_eagle, &dsc_import_alpaca,    &dsc_import_acclen,
    &dsc_import_vllm,  &dsc_import_jsonl,     NULL};

const dsc_import_driver *const *dsc_import_drivers(void)
{
    return drivers;
}

int dsc_import_probe(const dsc_import_driver **out, const json_t *line, dsc_error *err)
{
    char names[256] = "";
    int best = 0;
    for (const dsc_import_driver *const *d = drivers; *d; d++) {
        int score = (*d)->probe(line);
        if (score > best) {
            best = score;
            *out = *d;
        }
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", (*d)->name);
    }
    if (best)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "unrecognized format; the line matches none of %s. Name one with --format",
                    names);
}
