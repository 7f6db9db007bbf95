// SPDX-License-Identifier: Apache-2.0
// The list of drivers for totals, and the choice of the one that recognizes a file.
#include "traces/import/import_record.h"
#include "traces/import/import_source.h"
#include "traces/import/totals.h"

#include <string.h>

static const dsc_totals_driver *const drivers[] = {&dsc_totals_sglang, &dsc_totals_prometheus,
                                                   NULL};

const dsc_totals_driver *const *dsc_totals_drivers(void)
{
    return drivers;
}

const dsc_totals_driver *dsc_totals_find(const char *name)
{
    for (const dsc_totals_driver *const *d = drivers; *d; d++)
        if (strcmp((*d)->name, name) == 0)
            return *d;
    return NULL;
}

int dsc_totals_probe(const dsc_totals_driver **out, const char *path, dsc_error *err)
{
    *out = NULL;
    if (!dsc_import_rereadable(path))
        return DSC_OK; // the import itself reports errors
    dsc_import_source source = {0};
    dsc_line line;
    int rc = dsc_input_open(&source.in, path, err);
    if (rc)
        return rc;
    bool read = dsc_import_source_next(&source, true, &line, NULL) == DSC_OK && line.bytes;
    static const char table[] = "# draftscope: ";
    if (read && line.length >= sizeof table && !memcmp(line.bytes, table, sizeof table - 1))
        rc = dsc_fail(err, DSC_EINPUT,
                      "%s is a table, without texts: draftscope serve %s and theory length, "
                      "tune or sim --acceptance %s take it as it is",
                      path, path, path);
    for (const dsc_totals_driver *const *d = drivers; read && !rc && *d && !*out; d++)
        if ((*d)->probe(line.bytes, line.length))
            *out = *d;
    dsc_import_source_fini(&source);
    dsc_input_close(source.in);
    return rc;
}
