// SPDX-License-Identifier: Apache-2.0
// The table of fields that a user names: "prompt=question,output=answer".
#ifndef DSC_TRACES_IMPORT_MAP_H
#define DSC_TRACES_IMPORT_MAP_H

#include "traces/import/import_path.h"

enum { DSC_IMPORT_MAP_MAX = 32 };

struct dsc_import_map {
    dsc_import_field field[DSC_IMPORT_MAP_MAX + 1]; // ends with a row without `to`
    char *text;                                     // their storage; owned
};

// Parses "FIELD=PATH,FIELD=PATH,...". FIELD is a field of draftscope's JSON lines, "messages", or
// category, model, arrival_s, ttft_s, wall_time, new_tokens, which become metadata. DSC_EUSAGE: a
// part is not of this form, a field is unknown or given twice, or there is neither messages nor
// `needed`, "output" or "prompt".
int dsc_import_map_parse(struct dsc_import_map *map, const char *text, const char *needed,
                         dsc_error *err);
void dsc_import_map_fini(struct dsc_import_map *map);

#endif
