// SPDX-License-Identifier: Apache-2.0
// Trees from paths of child ranks: published trees by name, and trees read from a file.
#include "theory/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// EAGLE-1 (Li et al. 2024), model/choices.py: it is named mc_sim_7b_63 there, but has 25 draft
// tokens.
static const char eagle[] = "0\n1\n2\n3\n"
                            "0,0\n0,1\n0,2\n1,0\n1,1\n2,0\n2,1\n3,0\n"
                            "0,0,0\n0,0,1\n0,0,2\n0,1,0\n0,1,1\n0,2,0\n0,2,1\n1,0,0\n"
                            "0,0,0,0\n0,0,0,1\n0,0,0,2\n"
                            "0,0,0,0,0\n0,0,0,0,1\n";

// Medusa (Cai et al. 2024), medusa/model/medusa_choices.py, mc_sim_7b_63, in its order: greedily by
// expected gain.
static const char medusa[] =
    "0\n0,0\n1\n0,1\n2\n0,0,0\n1,0\n0,2\n3\n0,3\n4\n0,4\n2,0\n0,5\n0,0,1\n5\n0,6\n6\n0,7\n0,1,0\n"
    "1,1\n7\n0,8\n0,0,2\n3,0\n0,9\n8\n9\n1,0,0\n0,2,0\n1,2\n0,0,3\n4,0\n2,1\n0,0,4\n0,0,5\n"
    "0,0,0,0\n0,1,1\n0,0,6\n0,3,0\n5,0\n1,3\n0,0,7\n0,0,8\n0,0,9\n6,0\n0,4,0\n1,4\n7,0\n0,1,2\n"
    "2,0,0\n3,1\n2,2\n8,0\n0,5,0\n1,5\n1,0,1\n0,2,1\n9,0\n0,6,0\n0,0,0,1\n1,6\n0,7,0\n";

typedef struct path {
    int32_t rank[DSC_TREE_DEPTH];
    int length, line;
} path;

static int compare_ranks(const path *a, const path *b, int length)
{
    for (int i = 0; i < length; i++)
        if (a->rank[i] != b->rank[i])
            return a->rank[i] < b->rank[i] ? -1 : 1;
    return 0;
}

// Level by level, and by rank within a level: a parent comes before its children.
static int by_path(const void *pa, const void *pb)
{
    const path *a = pa, *b = pb;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return compare_ranks(a, b, a->length);
}

static int fill(dsc_tree *t, path *p, size_t paths, const char *what, dsc_error *err)
{
    qsort(p, paths, sizeof *p, by_path);
    for (size_t i = 0; i < paths; i++) {
        size_t parent = 0; // node j + 1 has path j
        if (i && !by_path(&p[i - 1], &p[i])) {
            int second = p[i].line > p[i - 1].line ? p[i].line : p[i - 1].line;
            return dsc_fail(err, DSC_EINPUT, "%s:%d: this path is given twice", what, second);
        }
        if (p[i].length > 1) {
            path above = p[i];
            above.length--;
            const path *found = bsearch(&above, p, i, sizeof *p, by_path);
            if (!found)
                return dsc_fail(err, DSC_EINPUT,
                                "%s:%d: the parent of this path (all but its last rank) is not in "
                                "the tree",
                                what, p[i].line);
            parent = (size_t)(found - p) + 1;
        }
        t->parent[i + 1] = (int32_t)parent;
        t->rank[i + 1] = p[i].rank[p[i].length - 1];
        t->level[i + 1] = p[i].length;
        t->depth = p[i].length;
    }
    return DSC_OK;
}

// Parses one line, [text, text + length), into *p, whose length stays 0 for an empty line.
static int parse_line(path *p, const char *text, size_t length, const char *what, dsc_error *err)
{
    const char *comment = memchr(text, '#', length), *end = comment ? comment : text + length;
    const char *whole = text;
    while (text < end && strchr(" \t\r", *text))
        text++;
    while (text < end && strchr(" \t\r", end[-1]))
        end--;
    while (text < end) {
        char *after;
        errno = 0;
        long rank = *text >= '0' && *text <= '9' ? strtol(text, &after, 10) : -1;
        if (rank < 0 || errno || rank >= DSC_TREE_RANKS || after > end ||
            (after < end && (*after != ',' || after + 1 == end)))
            return dsc_fail(err, DSC_EINPUT,
                            "%s:%d: '%.*s' is not a path: ranks from 0 to %d, joined by commas",
                            what, p->line, (int)(length > 60 ? 60 : length), whole,
                            DSC_TREE_RANKS - 1);
        if (p->length == DSC_TREE_DEPTH)
            return dsc_fail(err, DSC_EINPUT, "%s:%d: a path of more than %d ranks", what, p->line,
                            DSC_TREE_DEPTH);
        p->rank[p->length++] = (int32_t)rank;
        text = after < end ? after + 1 : end;
    }
    return DSC_OK;
}

int dsc_tree_parse(dsc_tree *t, const char *text, const char *what, dsc_error *err)
{
    path *p;
    size_t paths = 0;
    if (!t || !text || !what)
        return dsc_fail(err, DSC_EUSAGE, "dsc_tree_parse: an argument is NULL");
    *t = (dsc_tree){0};
    int line = 0, rc = dsc_new(&p, DSC_TREE_NODES, err);
    while (!rc && *text) {
        size_t length = strcspn(text, "\n");
        path one = {.line = ++line};
        rc = parse_line(&one, text, length, what, err);
        if (!rc && one.length && paths == DSC_TREE_NODES - 1)
            rc = dsc_fail(err, DSC_EINPUT, "%s:%d: a tree of more than %d draft tokens", what, line,
                          DSC_TREE_NODES - 1);
        if (!rc && one.length)
            p[paths++] = one;
        text += length + (text[length] == '\n');
    }
    if (!rc && !paths)
        rc = dsc_fail(err, DSC_EINPUT, "%s: it contains no path", what);
    if (!rc)
        rc = dsc_tree_new(t, paths + 1, err);
    if (!rc)
        rc = fill(t, p, paths, what, err);
    if (rc)
        dsc_tree_fini(t);
    free(p);
    return rc;
}

// Adds all `children` of every node down to `depth`.
static int full_tree(dsc_tree *t, const char *name, long children, long depth, dsc_error *err)
{
    size_t nodes = 1, level = 1;
    if (children < 1 || children >= DSC_TREE_NODES || depth < 0 || depth > DSC_TREE_DEPTH)
        return dsc_fail(err, DSC_EUSAGE,
                        "tree '%.60s': 1 to %d children and a depth of at most %d are expected",
                        name, DSC_TREE_NODES - 1, DSC_TREE_DEPTH);
    for (long d = 0; d < depth; d++) {
        level *= (size_t)children;
        nodes += level;
        if (nodes > DSC_TREE_NODES)
            return dsc_fail(err, DSC_EUSAGE, "tree '%.60s' has more than %d nodes", name,
                            DSC_TREE_NODES);
    }
    int rc = dsc_tree_new(t, nodes, err);
    for (size_t i = 1; i < nodes && !rc; i++) {
        t->parent[i] = (int32_t)((i - 1) / (size_t)children);
        t->rank[i] = (int32_t)((i - 1) % (size_t)children);
        t->level[i] = t->level[t->parent[i]] + 1;
        t->depth = t->level[i];
    }
    return rc;
}

int dsc_tree_named(dsc_tree *t, const char *name, dsc_error *err)
{
    char *end, *last;
    if (!t || !name)
        return dsc_fail(err, DSC_EUSAGE, "dsc_tree_named: the %s is NULL", t ? "name" : "tree");
    *t = (dsc_tree){0};
    if (!strcmp(name, "eagle"))
        return dsc_tree_parse(t, eagle, name, err);
    if (!strcmp(name, "medusa"))
        return dsc_tree_parse(t, medusa, name, err);
    if (!strncmp(name, "chain:", 6) && name[6] >= '0' && name[6] <= '9') {
        long length = strtol(name + 6, &end, 10);
        if (!*end)
            return full_tree(t, name, 1, length, err);
    } else if (name[0] >= '0' && name[0] <= '9') {
        long children = strtol(name, &end, 10);
        if (*end == '^' && end[1] >= '0' && end[1] <= '9') {
            long depth = strtol(end + 1, &last, 10);
            if (!*last)
                return full_tree(t, name, children, depth, err);
        }
    }
    return dsc_fail(err, DSC_EUSAGE, "no tree is called '%.60s': eagle, medusa, chain:L or K^D",
                    name);
}
