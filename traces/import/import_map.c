// SPDX-License-Identifier: Apache-2.0
// Reads lines whose fields the user names (options.map): prompt=question,output=choices.0.text. The
// fields become a request in draftscope's form, so that each may contain what the field of that
// name may contain there. `messages` becomes prompts and outputs as in a chat.
#include "traces/import/import_map.h"

#include "base/option.h"
#include "traces/import/import_chat.h"

#include <stdlib.h>
#include <string.h>

// The fields that a table may set. Names that end in '.' stand for all that begin so.
static const struct {
    const char *name, *to;
    double unit;
} targets[] = {
    {"prompt", "prompt", 0},
    {"output", "output", 0},
    {"messages", "messages", 0},
    {"references", "references", 0},
    {"id", "id", 0},
    {"finish_reason", "finish_reason", 0},
    {"category", "metadata.category", 0},
    {"model", "metadata.model", 0},
    {"arrival_s", "metadata.arrival_s", 1},
    {"ttft_s", "metadata.ttft_s", 1},
    {"wall_time", "metadata.wall_time", 1},
    {"new_tokens", "metadata.new_tokens", 0},
    {"metadata.", NULL, 0},
    {"logprobs", "logprobs", 0},
    {"draft_logprobs", "draft_logprobs", 0},
    {"draft_argmax", "draft_argmax", 0},
    {"target_argmax", "target_argmax", 0},
    {"draft_entropy", "draft_entropy", 0},
    {"target_entropy", "target_entropy", 0},
    {"draft_rows", "draft_rows", 0},
    {"target_rows", "target_rows", 0},
    {"steps.", NULL, 0},
    {"accept.", NULL, 0},
};
enum { TARGETS = sizeof targets / sizeof *targets };

static bool is_prefix(const char *name)
{
    return name[strlen(name) - 1] == '.';
}

static int unknown(const char *name, dsc_error *err)
{
    const char *names[TARGETS];
    size_t n = 0;
    for (size_t t = 0; t < TARGETS; t++)
        if (!is_prefix(targets[t].name))
            names[n++] = targets[t].name;
    return dsc_unknown_name("field in the map", name, names, n,
                            "fields are prompt, output, messages, references, id, category, model, "
                            "arrival_s, wall_time, finish_reason, metadata.NAME and the columns of "
                            "draftscope-trace(5)",
                            err);
}

static int add_field(struct dsc_import_map *map, size_t n, const char *name, const char *path,
                     dsc_error *err)
{
    dsc_import_field *f = &map->field[n];
    for (size_t t = 0; t < TARGETS && !f->to; t++) {
        const bool begins = is_prefix(targets[t].name) &&
                            !strncmp(name, targets[t].name, strlen(targets[t].name)) &&
                            name[strlen(targets[t].name)];
        if (begins || !strcmp(name, targets[t].name))
            *f = (dsc_import_field){begins ? name : targets[t].to, path, targets[t].unit, false};
    }
    if (!f->to)
        return unknown(name, err);
    f->required = !strcmp(name, "prompt") || !strcmp(name, "output") || !strcmp(name, "messages");
    for (size_t i = 0; i < n; i++)
        if (!strcmp(map->field[i].to, f->to))
            return dsc_fail(err, DSC_EUSAGE, "the map names field '%s' twice", name);
    return DSC_OK;
}

static bool has(const struct dsc_import_map *map, const char *to)
{
    bool found = false;
    for (const dsc_import_field *f = map->field; f->to; f++)
        found = found || !strcmp(f->to, to);
    return found;
}

int dsc_import_map_parse(struct dsc_import_map *map, const char *text, const char *needed,
                         dsc_error *err)
{
    size_t n = 0;
    *map = (struct dsc_import_map){0};
    int rc = dsc_strndup(&map->text, text, strlen(text), err);
    for (char *part = map->text, *next; !rc && part; part = next) {
        next = strchr(part, ',');
        if (next)
            *next++ = '\0';
        char *path = strchr(part, '=');
        if (!path || path == part || !path[1])
            rc = dsc_fail(err, DSC_EUSAGE,
                          "'%s' in the map must be FIELD=PATH, as in prompt=question,output=answer",
                          part);
        else if (n == DSC_IMPORT_MAP_MAX)
            rc = dsc_fail(err, DSC_EUSAGE, "the map has more than %d fields", DSC_IMPORT_MAP_MAX);
        if (rc)
            break;
        *path++ = '\0';
        rc = add_field(map, n++, part, path, err);
    }
    if (!rc && !has(map, needed) && !has(map, "messages"))
        rc = dsc_fail(err, DSC_EUSAGE, "the map must name the field of the %s: %s=FIELD", needed,
                      needed);
    return rc;
}

void dsc_import_map_fini(struct dsc_import_map *map)
{
    free(map->text);
    *map = (struct dsc_import_map){0};
}

// --- the driver --------------------------------------------------------------------------------

static int probe(const json_t *line)
{
    (void)line; // chosen by options.map
    return 0;
}

// The request of the fields, or a line of the chat format when they include messages.
static int expand(const json_t *line, const dsc_import_options *options, json_t *requests,
                  dsc_error *err)
{
    if (!options->fields)
        return dsc_fail(err, DSC_EUSAGE,
                        "the format mapped needs the names of fields: add --map "
                        "prompt=FIELD,output=FIELD");
    json_t *request = json_object();
    int rc = request ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc)
        rc = dsc_import_gather(request, options->fields->field, line, 0, err);
    if (!rc)
        rc = dsc_import_chat_question(request, err);
    if (!rc && json_object_get(request, "messages"))
        rc = dsc_import_chat_expand(request, options, requests, err);
    else if (!rc && !json_object_get(request, "prompt"))
        rc = dsc_import_put_at(request, "prompt", json_array(), err); // unknown: an empty prompt
    if (!rc && !json_object_get(request, "messages"))
        rc = dsc_import_add_request(requests, json_incref(request), 1, 1, err);
    json_decref(request);
    return rc;
}

const dsc_import_driver dsc_import_mapped = {
    .name = "mapped",
    .summary = "fields of any names: --map prompt=question,output=choices.0.text",
    .needs = "",
    .documents = true,
    .chats = true,
    .probe = probe,
    .expand = expand,
    .read = dsc_import_request_read,
};
