// SPDX-License-Identifier: Apache-2.0
// Opens the safetensors files of a Hugging Face folder and checks the index against their headers.
#include "live/model/checkpoint.h"

#include "base/memory.h"
#include "live/model/keys.h"
#include "live/model/names.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_INDEX = 64 << 20, MOST_SHARDS = 4096 };

static const char *const index_name = "model.safetensors.index.json";
// Published Medusa heads have the second name.
static const char *const single_names[] = {"model.safetensors", "medusa_lm_head.safetensors"};

typedef struct shard {
    char *path;
    const char *name; // in path
    dsc_safetensors *file;
} shard;

struct live_checkpoint {
    const char *folder; // set during open
    shard *shard;
    size_t shards, capacity;
    live_gguf *gguf; // or NULL
};

static int path_of(char **out, const char *folder, const char *name, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = dsc_buffer_printf(&b, err, "%s/%s", folder, name);
    *out = b.data;
    return rc;
}

static bool has(const char *folder, const char *name)
{
    char *path;
    bool there = path_of(&path, folder, name, NULL) == DSC_OK && access(path, F_OK) == 0;
    free(path);
    return there;
}

bool live_checkpoint_present(const char *folder)
{
    return has(folder, single_names[0]) || has(folder, index_name) || has(folder, single_names[1]);
}

static int open_shard(live_checkpoint *c, const char *name, dsc_error *err)
{
    int rc = dsc_resize(&c->shard, &c->capacity, c->shards + 1, err);
    if (rc)
        return rc;
    shard *s = &c->shard[c->shards];
    *s = (shard){0};
    rc = path_of(&s->path, c->folder, name, err);
    if (!rc)
        rc = dsc_safetensors_open(&s->file, s->path, err);
    if (rc) {
        free(s->path);
        return rc;
    }
    s->name = s->path + strlen(s->path) - strlen(name);
    c->shards++;
    return DSC_OK;
}

// --- pickled weights ---------------------------------------------------------------------------

// Returns the suffix of the folder's pickled weights, or NULL; *first (of `size` bytes) is one of
// their names, pytorch_model* if there is one. What else a trainer pickles does not count.
static const char *find_pickle(const char *folder, char *first, size_t size)
{
    static const char *const suffixes[] = {".bin", ".pt", ".pth"};
    static const char *const others[] = {"training_args", "optimizer", "scheduler", "rng_state"};
    static const char usual[] = "pytorch_model";
    const char *found = NULL;
    struct dirent *e;
    DIR *d = opendir(folder);
    while (d && (!found || strncmp(first, usual, strlen(usual))) && (e = readdir(d))) {
        bool other = false;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            other |= strncmp(e->d_name, others[i], strlen(others[i])) == 0;
        if (other || (found && strncmp(e->d_name, usual, strlen(usual))))
            continue;
        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
            if (live_name_ends_in(e->d_name, suffixes[i]))
                found = suffixes[i], snprintf(first, size, "%.100s", e->d_name);
    }
    if (d)
        closedir(d);
    return found;
}

// The command that the message contains is safe to paste whatever the files are called: of their
// names it has the plain characters at the beginning, and a pattern for the rest.
static int refuse(const char *folder, dsc_error *err)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    char first[128] = "";
    const char *suffix = find_pickle(folder, first, sizeof first);
    if (!suffix)
        return dsc_fail(err, DSC_EINPUT, "%s: no weights found (neither %s nor %s)", folder,
                        single_names[0], index_name);
    return dsc_fail(
        err, DSC_EINPUT,
        "%s: to convert %s (a pickle, which could run code if it were read), run in that folder: "
        "python3 -c \"import sys, torch; "
        "from safetensors.torch import save_file; save_file({k: v.clone().contiguous() "
        "for f in sys.argv[1:] for k, v in torch.load(f, map_location='cpu', "
        "weights_only=True).items()}, 'model.safetensors')\" ./%.*s*%s",
        folder, first, (int)strspn(first, plain), first, suffix);
}

// --- shards ------------------------------------------------------------------------------------

// Whether it is a plain file name, so that no path leads out of the folder.
static bool is_plain(const char *name)
{
    return *name != '.' && !strchr(name, '/') && live_name_ends_in(name, ".safetensors");
}

static const shard *shard_named(const live_checkpoint *c, const char *name)
{
    for (size_t i = 0; i < c->shards; i++)
        if (strcmp(c->shard[i].name, name) == 0)
            return &c->shard[i];
    return NULL;
}

static int open_entry(live_checkpoint *c, const char *path, const char *tensor, const char *name,
                      dsc_error *err)
{
    if (!name)
        return dsc_fail(err, DSC_EINPUT, "%s: the file of tensor '%.100s' is not a string", path,
                        tensor);
    if (!is_plain(name))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%.100s': file '%.100s' is not a .safetensors file of this "
                        "folder",
                        path, tensor, name);
    const shard *s = shard_named(c, name);
    if (!s && c->shards == MOST_SHARDS)
        return dsc_fail(err, DSC_EINPUT, "%s: more than %d files", path, MOST_SHARDS);
    if (!s) {
        int rc = open_shard(c, name, err);
        if (rc)
            return rc;
        s = &c->shard[c->shards - 1];
    }
    if (dsc_safetensors_find(s->file, tensor))
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "%s: tensor '%.100s' is not in %s", path, tensor, name);
}

// The converse: every tensor of a shard is listed in the index, for this shard.
static int check_listed(const live_checkpoint *c, const char *path, json_t *map, dsc_error *err)
{
    for (size_t i = 0; i < c->shards; i++)
        for (size_t t = 0; t < dsc_safetensors_count(c->shard[i].file); t++) {
            const char *tensor = dsc_safetensors_at(c->shard[i].file, t)->name;
            const char *name = json_string_value(json_object_get(map, tensor));
            if (!name || strcmp(name, c->shard[i].name) != 0)
                return dsc_fail(err, DSC_EINPUT,
                                "%s: tensor '%.100s' is in %s, but the index lists %s", path,
                                tensor, c->shard[i].name, name ? name : "no file");
        }
    return DSC_OK;
}

static int open_index(live_checkpoint *c, dsc_error *err)
{
    char *path = NULL;
    live_keys k = {0};
    json_t *file;
    const char *tensor;
    int rc = path_of(&path, c->folder, index_name, err);
    if (!rc)
        rc = live_keys_load(&k, path, LONGEST_INDEX, err);
    json_t *map = json_object_get(k.object, "weight_map");
    if (!rc && !json_object_size(map))
        rc = dsc_fail(err, DSC_EINPUT, "%s: 'weight_map' is not an object of tensors", path);
    if (!rc)
        json_object_foreach(map, tensor, file) if (!rc) rc =
            open_entry(c, path, tensor, json_string_value(file), err);
    if (!rc)
        rc = check_listed(c, path, map, err);
    json_decref(k.object);
    free(path);
    return rc;
}

int live_checkpoint_open(live_checkpoint **out, const char *folder, dsc_error *err)
{
    live_checkpoint *c;
    *out = NULL;
    int rc = dsc_new(&c, 1, err);
    if (rc)
        return rc;
    c->folder = folder;
    if (dsc_gguf_is(folder))
        rc = live_gguf_open(&c->gguf, folder, err);
    else if (has(folder, single_names[0]))
        rc = open_shard(c, single_names[0], err);
    else if (has(folder, index_name))
        rc = open_index(c, err);
    else if (has(folder, single_names[1]))
        rc = open_shard(c, single_names[1], err);
    else
        rc = refuse(folder, err);
    if (rc)
        live_checkpoint_close(c);
    else
        *out = c;
    return rc;
}

void live_checkpoint_close(live_checkpoint *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->shards; i++) {
        dsc_safetensors_close(c->shard[i].file);
        free(c->shard[i].path);
    }
    live_gguf_close(c->gguf);
    free(c->shard);
    free(c);
}

const dsc_tensor *live_checkpoint_find(const live_checkpoint *c, const char *name, size_t *at)
{
    static const char middle[] = "midlayer.";
    const dsc_tensor *t = NULL;
    if (c->gguf && at)
        *at = 0;
    if (c->gguf)
        return live_gguf_find(c->gguf, name);
    for (size_t i = 0; i < c->shards && !t; i++)
        if ((t = dsc_safetensors_find(c->shard[i].file, name)) && at)
            *at = i;
    const char *in = t ? NULL : strstr(name, middle);
    if (!in)
        return t;
    char other[LIVE_TENSOR_NAME];
    snprintf(other, sizeof other, "%.*slayers.0.%s", (int)(in - name), name,
             in + sizeof middle - 1);
    return live_checkpoint_find(c, other, at);
}

size_t live_checkpoint_shards(const live_checkpoint *c)
{
    return c->gguf ? 1 : c->shards;
}

const char *live_checkpoint_path(const live_checkpoint *c, size_t i)
{
    return c->gguf ? dsc_gguf_path(live_gguf_file(c->gguf)) : c->shard[i].path;
}

uint64_t live_checkpoint_bytes(const live_checkpoint *c, size_t i)
{
    return c->gguf ? dsc_gguf_bytes(live_gguf_file(c->gguf))
                   : dsc_safetensors_bytes(c->shard[i].file);
}

size_t live_checkpoint_count(const live_checkpoint *c, size_t file)
{
    return c->gguf ? live_gguf_count(c->gguf) : dsc_safetensors_count(c->shard[file].file);
}

const dsc_tensor *live_checkpoint_at(const live_checkpoint *c, size_t file, size_t i)
{
    return c->gguf ? live_gguf_at(c->gguf, i) : dsc_safetensors_at(c->shard[file].file, i);
}

const live_gguf *live_checkpoint_gguf(const live_checkpoint *c)
{
    return c->gguf;
}

const char *live_checkpoint_prefix(const live_checkpoint *c, live_family family)
{
    char name[LIVE_TENSOR_NAME];
    live_module sign;
    const char *const *prefixes = live_name_prefixes(family, &sign);
    for (const char *const *prefix = prefixes; *prefix; prefix++) {
        live_name(name, family, *prefix, sign, false, 0, 0);
        if (live_checkpoint_find(c, name, NULL))
            return *prefix;
    }
    return prefixes[0]; // the error about the missing tensor then shows the usual name
}

int live_checkpoint_medusa(const live_checkpoint *c, live_config *config, dsc_error *err)
{
    char name[LIVE_TENSOR_NAME];
    const char *prefix = live_checkpoint_prefix(c, LIVE_MEDUSA);
    live_name(name, LIVE_MEDUSA, prefix, LIVE_MEDUSA_OUT, false, 0, config->medusa_layers);
    const dsc_tensor *t = live_checkpoint_find(c, name, NULL);
    if (!t || t->rank != 2 || t->count < 1)
        return dsc_fail(err, DSC_EINPUT, "%s: tensor '%s' is missing or not a matrix",
                        live_checkpoint_path(c, 0), name);
    config->vocab = config->vocab ? config->vocab : t->shape[0];
    config->hidden = config->hidden ? config->hidden : t->shape[1];
    return DSC_OK;
}

bool live_checkpoint_embeds(const live_checkpoint *c, live_family family)
{
    char name[LIVE_TENSOR_NAME];
    live_name(name, family, live_checkpoint_prefix(c, family), LIVE_EMBED, false, 0, 0);
    return live_checkpoint_find(c, name, NULL) != NULL;
}
