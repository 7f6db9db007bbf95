// SPDX-License-Identifier: Apache-2.0
// Layers of a target as its draft model: reads the list of layers, and copies the addresses of
// their arrays. A session of these weights differs from the target's in its layers only.
#include "live/model/layers.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads a number of digits at *at and advances *at. Returns `absent` where there is none.
static int64_t read_layer(const char **at, int64_t absent)
{
    char *end;
    if (**at < '0' || **at > '9')
        return absent;
    const int64_t x = strtoll(*at, &end, 10);
    *at = end;
    return x < INT32_MAX ? x : INT32_MAX;
}

// One part of the list: FIRST:LAST or a layer.
static int read_part(const char **at, int64_t layers, int64_t *first, int64_t *last, dsc_error *err)
{
    const char *text = *at;
    const int n = (int)strcspn(text, ",") > 60 ? 60 : (int)strcspn(text, ",");
    *first = read_layer(at, *text == ':' ? 0 : -1);
    *last = *first + 1;
    if (**at == ':' && *first >= 0) {
        ++*at;
        *last = read_layer(at, layers);
    }
    if (*first < 0 || (**at && **at != ','))
        return dsc_fail(err, DSC_EUSAGE,
                        "'%.*s' is not FIRST:LAST or a layer; 0:%" PRId64
                        " are the first half of the target's layers",
                        n, text, layers > 1 ? layers / 2 : 1);
    if (*first >= layers || *last > layers)
        return dsc_fail(err, DSC_EUSAGE,
                        "'%.*s' is outside of the target, which has the %" PRId64
                        " layers 0:%" PRId64,
                        n, text, layers, layers);
    return *last > *first
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE,
                          "'%.*s' contains no layer; LAST is the layer after the last one", n,
                          text);
}

int live_layers_parse(int64_t **out, size_t *count, const char *text, int64_t layers,
                      dsc_error *err)
{
    int64_t first, last, next = 0;
    *count = 0;
    int rc = dsc_new(out, (size_t)layers, err);
    for (const char *at = text; !rc; at++) {
        rc = read_part(&at, layers, &first, &last, err);
        if (!rc && first < next)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "layer %" PRId64 " follows layer %" PRId64
                          "; layers ascend and occur once",
                          first, next - 1);
        for (next = last; !rc && first < last; first++)
            (*out)[(*count)++] = first;
        if (!rc && !*at)
            break;
    }
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

void live_config_keep(live_config *c, const int64_t *layer, size_t count)
{
    (void)layer; // all layers have one description
    c->layers = (int64_t)count;
}

static void hash_layers(const live_weights *w, const int64_t *layer, size_t count,
                        char hex[DSC_SHA256_HEX])
{
    dsc_sha256 s;
    char text[24];
    dsc_sha256_init(&s);
    dsc_sha256_update(&s, w->fingerprint, strlen(w->fingerprint));
    for (size_t i = 0; i < count; i++) {
        const int n = snprintf(text, sizeof text, " %" PRId64, layer[i]);
        dsc_sha256_update(&s, text, (size_t)n);
    }
    dsc_sha256_final(&s, hex);
}

int live_weights_layers(live_weights **out, const live_weights *w, const int64_t *layer,
                        size_t count, live_backend *b, dsc_error *err)
{
    live_weights *part;
    int rc = live_weights_borrow(&part, w, count, b, err);
    *out = NULL;
    if (rc)
        return rc;
    live_config_keep(&part->config, layer, count);
    for (size_t i = 0; i < count; i++)
        part->layer[i] = w->layer[layer[i]];
    hash_layers(w, layer, count, part->fingerprint);
    *out = part;
    return DSC_OK;
}
