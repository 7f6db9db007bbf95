// SPDX-License-Identifier: Apache-2.0
// Writes a checkpoint folder that contains some layers of another one: the oracle of
// --draft-layers. Tensors of layers that are left out are dropped, the others renumbered.
#ifndef DSC_TESTS_KEPT_LAYERS_H
#define DSC_TESTS_KEPT_LAYERS_H

#include "traces/files/safetensors.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The number of a tensor's layer in its name, between dots, or NULL.
static inline const char *kept_number(const char *name)
{
    for (const char *at = strchr(name, '.'); at; at = strchr(at + 1, '.'))
        if (isdigit((unsigned char)at[1]))
            return at + 1;
    return NULL;
}

// The new name of a tensor in `to`; false: its layer is left out.
static inline bool kept_name(const char *name, const int64_t *layer, size_t count, char *to,
                             size_t size)
{
    const char *number = kept_number(name);
    char *rest;
    snprintf(to, size, "%s", name);
    if (!number)
        return true;
    const long old = strtol(number, &rest, 10);
    for (size_t i = 0; i < count; i++)
        if (layer[i] == old) {
            snprintf(to, size, "%.*s%zu%s", (int)(number - name), name, i, rest);
            return true;
        }
    return false;
}

static inline int kept_config(const char *from, const char *to, const int64_t *layer, size_t count)
{
    json_error_t e;
    json_t *c = json_load_file(from, 0, &e);
    json_t *kinds = json_object_get(c, "layer_types");
    if (!c)
        return -1;
    json_object_set_new(c, json_object_get(c, "n_layer") ? "n_layer" : "num_hidden_layers",
                        json_integer((json_int_t)count));
    if (json_is_array(kinds)) {
        json_t *kept = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append(kept, json_array_get(kinds, (size_t)layer[i]));
        json_object_set_new(c, "layer_types", kept);
    }
    const int rc = json_dump_file(c, to, JSON_INDENT(1));
    json_decref(c);
    return rc;
}

// FROM/config.json and FROM/model.safetensors with these layers, in the folder TO, which exists.
static inline int kept_layers_write(const char *from, const char *to, const int64_t *layer,
                                    size_t count, dsc_error *err)
{
    enum { MOST = 512, NAME = 200 };
    static char name[MOST][NAME], a[600], b[600];
    static dsc_tensor kept[MOST];
    dsc_safetensors *file;
    size_t n = 0;
    snprintf(a, sizeof a, "%s/config.json", from);
    snprintf(b, sizeof b, "%s/config.json", to);
    if (kept_config(a, b, layer, count))
        return dsc_fail(err, DSC_EINPUT, "%s: cannot be copied", a);
    snprintf(a, sizeof a, "%s/model.safetensors", from);
    snprintf(b, sizeof b, "%s/model.safetensors", to);
    int rc = dsc_safetensors_open(&file, a, err);
    for (size_t i = 0; !rc && i < dsc_safetensors_count(file) && n < MOST; i++) {
        kept[n] = *dsc_safetensors_at(file, i);
        if (!kept_name(kept[n].name, layer, count, name[n], NAME))
            continue;
        kept[n].name = name[n];
        n++;
    }
    remove(b);
    if (!rc)
        rc = dsc_safetensors_write(b, kept, n, err);
    dsc_safetensors_close(file);
    return rc;
}

#endif
