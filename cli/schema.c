// SPDX-License-Identifier: Apache-2.0
// draftscope COMMAND --json-schema: the JSON Schema (draft 2020-12) of an object that COMMAND
// --json prints. It is made of the tables of columns that the help lists and that the results are
// written from, so that neither can differ from it.
#include "base/columns.h"
#include "cli/method.h"
#include "sim/run/result.h"

#include <jansson.h>
#include <string.h>

// A schema under way.
typedef struct schema {
    json_t *properties;
    json_t *complete; // one array of names per kind of row: a row has all names of one of them
    bool columns;     // the section that fields are added from lists columns
    const cli_command *command;
} schema;

bool cli_asks_schema(int argc, char **argv)
{
    for (int a = 0; a < argc && strcmp(argv[a], "--"); a++)
        if (strcmp(argv[a], "--json-schema") == 0)
            return true;
    return false;
}

static bool is_structured(const schema *s, const char *name)
{
    for (const char *const *n = s->command->structured; n && *n; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return false;
}

// The types of a value of a column; where a number is missing, it is null.
static json_t *types_of(const schema *s, const dsc_column *x)
{
    if (is_structured(s, x->name))
        return json_pack("[s, s, s]", "object", "array", "null");
    switch (x->type) {
    case DSC_CELL_INT: return json_pack("[s, s]", "integer", "null");
    case DSC_CELL_REAL: return json_pack("[s, s]", "number", "null");
    case DSC_CELL_LIST: return json_pack("[s, s]", "array", "null");
    default: return json_pack("[s]", "string");
    }
}

// Adds the types that a column of the same name has in another kind of row.
static void merge_types(json_t *property, const json_t *more)
{
    json_t *types = json_object_get(property, "type");
    for (size_t m = 0; m < json_array_size(more); m++) {
        const char *type = json_string_value(json_array_get(more, m));
        bool known = false;
        for (size_t i = 0; i < json_array_size(types); i++)
            known = known || !strcmp(json_string_value(json_array_get(types, i)), type);
        if (!known)
            json_array_append_new(types, json_string(type));
    }
}

static void add_property(schema *s, const dsc_column *x)
{
    json_t *types = types_of(s, x), *property = json_object_get(s->properties, x->name);
    if (property) {
        merge_types(property, types);
        json_decref(types);
        return;
    }
    property = json_pack("{s:o, s:s}", "type", types, "description", x->help ? x->help : "");
    if (x->type == DSC_CELL_LIST && !is_structured(s, x->name))
        json_object_set_new(property, "items", json_pack("{s:[s, s]}", "type", "number", "null"));
    json_object_set_new(s->properties, x->name, property);
}

// One section of the help. Without a title it continues the one before it. Names in capitals stand
// for a metadata field.
static void add_section(void *user, const char *title, const dsc_column *field, size_t count)
{
    static const char *const heading[] = {"Columns", "Result fields", "Measured fields", "Fields"};
    schema *s = user;
    if (title) {
        s->columns = false;
        for (size_t i = 0; i < sizeof heading / sizeof *heading; i++)
            s->columns = s->columns || !strncmp(title, heading[i], strlen(heading[i]));
        if (s->columns)
            json_array_append_new(s->complete, json_array());
    }
    json_t *names = json_array_get(s->complete, json_array_size(s->complete) - 1);
    for (size_t i = 0; i < count && s->columns; i++)
        if (field[i].name[0] >= 'a') {
            add_property(s, &field[i]);
            json_array_append_new(names, json_string(field[i].name));
        }
}

// The columns of rows of one method: parameters, its counters and, unless the command has its own,
// the result fields. Numbers of parameters are real where methods share a column.
static int add_method(schema *s, const dsc_drafter_type *const *method, const dsc_table *fields,
                      dsc_error *err)
{
    const int parts = DSC_RESULT_REQUEST | DSC_RESULT_INTERVAL | DSC_RESULT_EXPECTED |
                      DSC_RESULT_BATCH | DSC_RESULT_SPREAD;
    dsc_table t = {0};
    int rc = dsc_result_columns(&t, method, 1, parts, err);
    for (size_t c = 0; c < t.columns && !rc; c++) {
        dsc_column x = t.column[c];
        const bool field = dsc_table_find(fields, x.name) >= 0;
        if (x.type == DSC_CELL_INT && !field)
            x.type = DSC_CELL_REAL;
        if (!strcmp(x.name, DSC_COL_METHOD)) // not the summary of the first method
            x.help = "drafting method";
        if (!field || !s->command->own_columns)
            add_property(s, &x);
    }
    dsc_table_fini(&t);
    return rc;
}

static int add_methods(schema *s, dsc_error *err)
{
    size_t count;
    const dsc_column *field = dsc_result_fields(&count);
    dsc_table fields = {0};
    int rc = dsc_table_add_columns(&fields, field, count, err);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d && !rc; d++)
        rc = add_method(s, d, &fields, err);
    if (!rc && !s->command->own_columns)
        add_section(s, "Result fields", field, count);
    dsc_table_fini(&fields);
    return rc;
}

// A row has all columns of one kind: {"anyOf": [{"required": [...]}, ...]}.
static json_t *alternatives(const schema *s)
{
    json_t *any = json_array();
    for (size_t i = 0; i < json_array_size(s->complete); i++)
        json_array_append_new(any, json_pack("{s:O}", "required", json_array_get(s->complete, i)));
    return any;
}

static int fill(schema *s, dsc_error *err)
{
    const cli_command *c = s->command;
    const bool runs_methods =
        c->methods && c->methods != CLI_METHOD_MAYBE && !c->fields[0].count; // tune has its own
    int rc = runs_methods ? add_methods(s, err) : DSC_OK;
    for (const cli_help_fields *f = c->fields; f < c->fields + CLI_MAX_FIELDS && f->count; f++)
        add_section(s, f->title, f->field, f->count);
    if (c->more_fields)
        c->more_fields(add_section, s);
    return rc;
}

int cli_print_schema(const cli_command *c, dsc_error *err)
{
    if (!dsc_option_find(c->option, c->options, "json"))
        return dsc_fail(err, DSC_EUSAGE,
                        "--json-schema describes what --json prints, and %s has no --json",
                        c->name);
    schema s = {.properties = json_object(), .complete = json_array(), .command = c};
    int rc = fill(&s, err);
    const bool by = dsc_option_find(c->option, c->options, "by") != NULL;
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:s, s:O, s:o}", "$schema",
                  "https://json-schema.org/draft/2020-12/schema", "title", c->usage, "description",
                  c->summary, "type", "object", "properties", s.properties, "additionalProperties",
                  by ? json_pack("{s:[s, s], s:s}", "type", "string", "object", "description",
                                 "value of the metadata field of --by")
                     : json_false());
    json_object_set_new(root, "minProperties", json_integer(2));
    if (!c->optional_columns)
        json_object_set_new(root, "anyOf", alternatives(&s));
    if (c->bounds)
        json_object_set_new(root, "patternProperties",
                            json_pack("{s:{s:[s, s]}}", "_(low|high)$", "type", "number", "null"));
    if (!rc && !root)
        rc = dsc_fail(err, DSC_ENOMEM, "no memory for the schema");
    if (!rc) {
        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(root);
    json_decref(s.properties);
    json_decref(s.complete);
    return rc;
}
