// SPDX-License-Identifier: Apache-2.0
// check_schema SCHEMA FILE: checks every JSON value of FILE against a JSON Schema, of which it
// knows the keywords that `draftscope COMMAND --json-schema` writes; another keyword is an error.
// The head
// {"#": ...} of a table is passed over. Prints the number of values, or what is wrong on stderr.
#include <jansson.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool valid(const json_t *schema, const json_t *x, const char *at, bool said);

static bool matches(const char *pattern, const char *name)
{
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB))
        return false;
    const bool found = !regexec(&compiled, name, 0, NULL, 0);
    regfree(&compiled);
    return found;
}

static bool is_of(const char *type, const json_t *x)
{
    switch (json_typeof(x)) {
    case JSON_OBJECT: return !strcmp(type, "object");
    case JSON_ARRAY: return !strcmp(type, "array");
    case JSON_STRING: return !strcmp(type, "string");
    case JSON_INTEGER: return !strcmp(type, "integer") || !strcmp(type, "number");
    case JSON_REAL: return !strcmp(type, "number");
    case JSON_NULL: return !strcmp(type, "null");
    default: return !strcmp(type, "boolean");
    }
}

static bool check_type(const json_t *type, const json_t *x)
{
    bool found = json_is_string(type) && is_of(json_string_value(type), x);
    for (size_t i = 0; i < json_array_size(type) && !found; i++)
        found = is_of(json_string_value(json_array_get(type, i)), x);
    return found;
}

// Every member is one of `properties`, has a name of a pattern, or is as additionalProperties says.
static bool check_members(const json_t *schema, const json_t *x, bool said)
{
    const json_t *properties = json_object_get(schema, "properties"),
                 *rest = json_object_get(schema, "additionalProperties");
    const char *name, *pattern;
    json_t *member, *of;
    json_object_foreach((json_t *)x, name, member)
    {
        const json_t *own = json_object_get(properties, name);
        json_object_foreach(json_object_get(schema, "patternProperties"), pattern, of) own =
            !own && matches(pattern, name) ? of : own;
        own = own ? own : rest;
        if (json_is_false(own)) {
            if (said)
                fprintf(stderr, "'%s' is not in the schema\n", name);
            return false;
        }
        if (json_is_object(own) && !valid(own, member, name, said))
            return false;
    }
    return true;
}

static bool check_required(const json_t *required, const json_t *x, bool said)
{
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (!json_object_get(x, name)) {
            if (said)
                fprintf(stderr, "'%s' is required and missing\n", name);
            return false;
        }
    }
    return true;
}

static bool check_any(const json_t *any, const json_t *x, const char *at, bool said)
{
    for (size_t i = 0; i < json_array_size(any); i++)
        if (valid(json_array_get(any, i), x, at, false))
            return true;
    if (said && json_array_size(any)) { // what the first one lacks
        fprintf(stderr, "'%s' is of no kind of anyOf; of the first:\n", at);
        valid(json_array_get(any, 0), x, at, true);
    }
    return !json_array_size(any);
}

static bool valid(const json_t *schema, const json_t *x, const char *at, bool said)
{
    static const char known[] = "$schema title description properties additionalProperties "
                                "patternProperties minProperties type items required anyOf ";
    const char *keyword;
    json_t *value;
    json_object_foreach((json_t *)schema, keyword, value)
    {
        bool fine = strstr(known, keyword) != NULL;
        if (!strcmp(keyword, "type"))
            fine = check_type(value, x);
        else if (!strcmp(keyword, "required"))
            fine = check_required(value, x, said);
        else if (!strcmp(keyword, "minProperties"))
            fine = (json_int_t)json_object_size(x) >= json_integer_value(value);
        else if (!strcmp(keyword, "anyOf"))
            fine = check_any(value, x, at, said);
        for (size_t i = 0; !strcmp(keyword, "items") && i < json_array_size(x) && fine; i++)
            fine = valid(value, json_array_get(x, i), at, said);
        if (!fine) {
            if (said)
                fprintf(stderr, "'%s' fails at keyword '%s'\n", at, keyword);
            return false;
        }
    }
    return !json_is_object(x) || check_members(schema, x, said);
}

int main(int argc, char **argv)
{
    json_error_t e = {0};
    json_t *schema = argc == 3 ? json_load_file(argv[1], 0, &e) : NULL;
    FILE *f = schema ? fopen(argv[2], "r") : NULL;
    size_t values = 0;
    bool fine = true;
    if (!f) {
        fprintf(stderr, "check_schema SCHEMA FILE: %s\n", e.text);
        return 2;
    }
    for (json_t *x; fine && (x = json_loadf(f, JSON_DISABLE_EOF_CHECK, &e)); values++) {
        fine = json_object_get(x, "#") || valid(schema, x, "value", true);
        json_decref(x);
    }
    if (fine && !feof(f)) {
        fprintf(stderr, "%s: %s\n", argv[2], e.text);
        fine = false;
    }
    printf("%zu values\n", values);
    fclose(f);
    json_decref(schema);
    return fine && values ? 0 : 1;
}
