// SPDX-License-Identifier: Apache-2.0
// Changes of JSON values (configurations, manifests, tokenizers, lines of data) and of safetensors,
// whose header is JSON. A change sets, removes, moves, repeats, renames or nests one value.
#include "tests/fuzz/mutate.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A value and the object or array that has it.
typedef struct slot {
    json_t *parent, *value;
    const char *key; // in an object
    size_t index;    // in an array
} slot;

enum { SLOTS = 4096, LONGEST = 1 << 16 };
typedef struct slots {
    slot slot[SLOTS];
    size_t count;
} slots;

// Lists the values below one, up to SLOTS of them.
static void list_slots(json_t *value, slots *s)
{
    const char *key;
    json_t *child;
    size_t i;
    json_object_foreach(value, key, child)
    {
        if (s->count < SLOTS)
            s->slot[s->count++] = (slot){value, child, key, 0};
        list_slots(child, s);
    }
    json_array_foreach(value, i, child)
    {
        if (s->count < SLOTS)
            s->slot[s->count++] = (slot){value, child, NULL, i};
        list_slots(child, s);
    }
}

// Takes the reference to `value`.
static void set(const slot *at, json_t *value)
{
    if (at->key)
        json_object_set_new(at->parent, at->key, value);
    else
        json_array_set_new(at->parent, at->index, value);
}

static json_t *some_number(fuzz_random *r)
{
    const char *text = fuzz_number(r);
    json_t *number = json_loads(text, JSON_DECODE_ANY, NULL);
    return number ? number : json_real(strtod(text, NULL)); // -0, or beyond 64 bits
}

static json_t *some_scalar(fuzz_random *r)
{
    switch (fuzz_below(r, 8)) {
    case 0: return json_null();
    case 1: return json_boolean(fuzz_below(r, 2));
    case 2: return json_string("");
    case 3: return json_array();
    case 4: return json_object();
    case 5: return json_string(fuzz_number(r));
    default: return some_number(r);
    }
}

// The string, repeated or with another one joined to it.
static json_t *longer_string(fuzz_random *r, const json_t *value, const json_t *other)
{
    const char *text = json_string_value(value), *joined = json_string_value(other);
    const size_t length = strlen(text), times = 1 + fuzz_below(r, 300);
    dsc_buffer b = {0};
    fuzz_put(&b, text, length);
    if (joined && fuzz_below(r, 2))
        fuzz_put(&b, joined, strlen(joined));
    else
        for (size_t i = 0; i < times && b.length + length < LONGEST; i++)
            fuzz_put(&b, text, length);
    json_t *out = b.data ? json_stringn_nocheck(b.data, b.length) : json_string("a");
    dsc_buffer_fini(&b);
    return out;
}

// Gives the value of a field another name, or its name to a copy of another value.
static void change_key(fuzz_random *r, const slot *at, const slot *other)
{
    json_t *parent = json_is_object(other->parent) ? other->parent : at->parent;
    const char *key = other->key ? other->key : at->key;
    char name[256];
    if (!key)
        return;
    snprintf(name, sizeof name, "%s", key);
    json_t *value = json_deep_copy(at->value);
    if (at->key && fuzz_below(r, 2))
        json_object_del(at->parent, at->key);
    json_object_set_new(parent, name, value);
}

static void change_slot(fuzz_random *r, const slot *at, const slot *other)
{
    json_t *copy = json_deep_copy(other->value);
    switch (fuzz_below(r, 9)) {
    case 0: set(at, some_scalar(r)); break;
    case 1:
        if (at->key)
            json_object_del(at->parent, at->key);
        else
            json_array_remove(at->parent, at->index);
        break;
    case 2: set(at, json_incref(copy)); break;
    case 3:
        if (!at->key)
            json_array_insert(at->parent, at->index, copy);
        else
            change_key(r, at, other);
        break;
    case 4: change_key(r, at, other); break;
    case 5: set(at, json_pack("[o, O]", json_deep_copy(at->value), copy)); break;
    case 6:
        if (json_is_string(at->value))
            set(at, longer_string(r, at->value, other->value));
        else
            set(at, some_number(r));
        break;
    default: set(at, some_number(r)); break;
    }
    json_decref(copy);
}

// Changes one to three values below the root. The list is made anew each time, because a change may
// free what it names.
static void change_value(fuzz_random *r, json_t *root)
{
    slots *s = malloc(sizeof *s);
    if (!s)
        exit(99);
    for (uint32_t times = 1 + fuzz_below(r, 3); times > 0; times--) {
        s->count = 0;
        list_slots(root, s);
        if (s->count)
            change_slot(r, &s->slot[fuzz_below(r, s->count)], &s->slot[fuzz_below(r, s->count)]);
    }
    free(s);
}

static void put_json(const json_t *root, dsc_buffer *out)
{
    char *text = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    if (text)
        fuzz_put(out, text, strlen(text));
    free(text);
}

void fuzz_change_json(fuzz_random *r, fuzz_bytes part, dsc_buffer *out)
{
    json_t *root = json_loadb((const char *)part.data, part.size, JSON_DECODE_ANY, NULL);
    if (!root || !fuzz_below(r, 8)) {
        json_decref(root);
        fuzz_change_bytes(r, part, out);
        return;
    }
    change_value(r, root);
    put_json(root, out);
    json_decref(root);
}

// --- safetensors ---------------------------------------------------------------------------------

// Bytes of a tensor by its type and shape; 0 where these are not sound or it is large.
static size_t tensor_bytes(const json_t *tensor)
{
    const char *type = json_string_value(json_object_get(tensor, "dtype"));
    const json_t *shape = json_object_get(tensor, "shape");
    json_int_t bytes = !type ? 0 : strchr(type, '8') ? 1 : strstr(type, "16") ? 2 : 4;
    if (type && strstr(type, "64"))
        bytes = 8;
    for (size_t i = 0; i < json_array_size(shape) && bytes <= LONGEST; i++) {
        json_int_t n = json_integer_value(json_array_get(shape, i));
        bytes = n < 0 || n > LONGEST ? 0 : bytes * n;
    }
    return bytes <= LONGEST ? (size_t)bytes : 0;
}

// Lays the tensors out one after the other, so that changed shapes and types pass the checks of
// extents. Returns the bytes of them all.
static size_t fit_offsets(json_t *header)
{
    const char *key;
    json_t *tensor;
    size_t end = 0;
    json_object_foreach(header, key, tensor)
    {
        if (!json_object_get(tensor, "data_offsets"))
            continue;
        const size_t begin = end;
        end += tensor_bytes(tensor);
        json_object_set_new(tensor, "data_offsets",
                            json_pack("[I, I]", (json_int_t)begin, (json_int_t)end));
    }
    return end;
}

static void put_file(fuzz_random *r, const dsc_buffer *header, fuzz_bytes data, dsc_buffer *out)
{
    uint64_t length = header->length + (fuzz_below(r, 16) ? 0 : fuzz_below(r, 17) - (uint64_t)8);
    unsigned char bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(length >> 8 * i);
    fuzz_put(out, bytes, sizeof bytes);
    fuzz_put(out, header->data, header->length);
    fuzz_put(out, data.data, data.size);
}

void fuzz_change_safetensors(fuzz_random *r, fuzz_bytes part, dsc_buffer *out)
{
    uint64_t length = 0;
    for (size_t i = 0; i < 8 && part.size >= 8; i++)
        length |= (uint64_t)part.data[i] << 8 * i;
    if (part.size < 8 || length > part.size - 8) {
        fuzz_change_bytes(r, part, out);
        return;
    }
    fuzz_bytes head = {part.data + 8, (size_t)length};
    fuzz_bytes data = {head.data + head.size, part.size - 8 - head.size};
    dsc_buffer header = {0}, changed = {0};
    json_t *root = json_loadb((const char *)head.data, head.size, 0, NULL);
    if (!root || !fuzz_below(r, 4)) {
        fuzz_put(&header, head.data, head.size);
        fuzz_change_bytes(r, data, &changed);
    } else {
        change_value(r, root);
        const size_t wanted = fuzz_below(r, 2) ? fit_offsets(root) : data.size;
        const size_t kept = data.size < wanted ? data.size : wanted;
        fuzz_put(&changed, data.data, kept);
        for (size_t i = kept; i < wanted; i++)
            fuzz_put(&changed, "\0", 1);
        put_json(root, &header);
    }
    while (header.length % 8) // data are aligned
        fuzz_put(&header, " ", 1);
    put_file(r, &header, (fuzz_bytes){(uint8_t *)changed.data, changed.length}, out);
    json_decref(root);
    dsc_buffer_fini(&header);
    dsc_buffer_fini(&changed);
}
