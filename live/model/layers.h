// SPDX-License-Identifier: Apache-2.0
// Self-speculation: some layers of a target, followed by its final norm and output matrix, are a
// draft model that shares the target's weights. The first layers are LayerSkip's early exit
// (Elhoushi et al. 2024); others left out are Draft & Verify's skipped layers (Zhang et al. 2023).
#ifndef DSC_LIVE_LAYERS_H
#define DSC_LIVE_LAYERS_H

#include "live/model/weights.h"

// Parses the layers to keep of a model of `layers` layers: "0:24" are those from 0 to 23, as a
// Python slice; ":24" and "20:" leave an end out; "7" is one layer; "0:4,20:24" are several parts,
// in ascending order. *out [*count] is owned by the caller. DSC_EUSAGE: not such a list, a layer
// that the model lacks, or no layer.
int live_layers_parse(int64_t **out, size_t *count, const char *text, int64_t layers,
                      dsc_error *err);

// Makes *c the configuration of a model with these of its layers only.
void live_config_keep(live_config *c, const int64_t *layer, size_t count);

// Makes the draft model of these layers of `w`, ascending. It has no memory on the device of its
// own (bytes is 0) and must be freed before `w`. Its passes run on `b`, a backend of the same
// device. Its fingerprint is the SHA-256 of that of `w` and the layers. DSC_ENOMEM.
int live_weights_layers(live_weights **out, const live_weights *w, const int64_t *layer,
                        size_t count, live_backend *b, dsc_error *err);

#endif
