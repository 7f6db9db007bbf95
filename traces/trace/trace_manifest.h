// SPDX-License-Identifier: Apache-2.0
// Internal: the manifest of a trace, and the open trace and shard that are described by it.
#ifndef DSC_TRACES_TRACE_MANIFEST_H
#define DSC_TRACES_TRACE_MANIFEST_H

#include "traces/trace/trace_columns.h"

#include <jansson.h>
#include <sys/stat.h>

enum { DSC_MANIFEST_MAX = 64 * 1024 * 1024 }; // bytes

typedef struct dsc_shard_entry {
    int64_t requests, prompt_tokens, output_tokens, reference_tokens, references;
    int64_t bytes;         // size of the file
    int64_t first_request; // index of its first request in the trace
    char sha256[DSC_SHA256_HEX];
} dsc_shard_entry;

struct dsc_trace {
    char *path; // without trailing slashes
    dsc_trace_info info;
    dsc_shard_entry *shard;
    size_t shards;
};

struct dsc_shard {
    const dsc_trace *trace;
    const dsc_shard_entry *entry;
    char *path;
    struct stat opened; // the file before it was mapped
    dsc_safetensors *file;
    const void *column[DSC_COLUMNS]; // NULL: not recorded
    int64_t count[DSC_COLUMNS];      // elements of the column's shape
    dsc_dtype dtype[DSC_COLUMNS];
    int64_t unknown; // tensors that are no column of this trace
};

// Paths inside a trace folder; *out owned by the caller.
int dsc_trace_shard_path(char **out, const char *folder, size_t shard, dsc_error *err);
int dsc_trace_manifest_path(char **out, const char *folder, dsc_error *err);

// The trace's hash: SHA-256 over the lines "<shard's SHA-256>\n" in the order of the shards.
void dsc_trace_hash(const dsc_shard_entry *shard, size_t shards, char hex[DSC_SHA256_HEX]);

// The manifest's own hash, stored in its field "manifest_sha256": SHA-256 of all other fields as
// compact JSON text with sorted keys. It protects what no shard hash covers (vocabulary size, EOS
// token, provenance).
int dsc_manifest_seal(const json_t *manifest, char hex[DSC_SHA256_HEX], dsc_error *err);

// Makes the manifest as JSON, with its own hash. *out is owned by the caller (json_decref). The
// counts and the hash in *info must be final.
int dsc_manifest_make(json_t **out, const dsc_trace_info *info, const dsc_shard_entry *shard,
                      size_t shards, dsc_error *err);
// Writes it into `folder` by a rename. `replace` permits an existing manifest.
int dsc_manifest_write(const json_t *manifest, const char *folder, bool replace, dsc_error *err);

// Frees the strings, which must be allocated.
void dsc_trace_info_fini(dsc_trace_info *info);

#endif
