// SPDX-License-Identifier: Apache-2.0
// Reads draft trees and acceptance rates by rank from options and small text files.
#include "sim/draft/tree_file.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_FILE = 1 << 20 }; // bytes

static int read_text(char **text, const char *path, dsc_error *err)
{
    size_t length;
    int rc = dsc_read_file(text, &length, path, LONGEST_FILE, err);
    if (!rc && strlen(*text) != length) {
        free(*text);
        *text = NULL;
        rc = dsc_fail(err, DSC_EINPUT, "%s: not a text file", path);
    }
    return rc;
}

int dsc_tree_load(dsc_tree *t, const char *name, dsc_error *err)
{
    char *text;
    *t = (dsc_tree){0};
    if (!strpbrk(name, "/."))
        return dsc_tree_named(t, name, err);
    int rc = read_text(&text, name, err);
    if (rc)
        return rc;
    rc = dsc_tree_parse(t, text, name, err);
    free(text);
    return rc;
}

// --- acceptances -------------------------------------------------------------------------------

// The origin of a text of rows: an option's value or a file.
typedef struct source {
    const char *what; // for messages
    int status;       // DSC_EUSAGE or DSC_EINPUT
    char end;         // of a row
} source;

// Parses one row, text[0, length), into row[DSC_TREE_RANKS]; *ranks is 0 for an empty row.
static int parse_row(const source *s, const char *text, size_t length, int depth, double *row,
                     int *ranks, dsc_error *err)
{
    static const char blank[] = " \t\r";
    const char *end = memchr(text, '#', length);
    end = end ? end : text + length;
    *ranks = 0;
    while (text < end && strchr(blank, *text))
        text++;
    while (text < end && strchr(blank, end[-1]))
        end--;
    while (text < end) {
        char *after = (char *)text;
        double x = strchr("0123456789.", *text) ? strtod(text, &after) : -1;
        while (after < end && strchr(blank, *after))
            after++;
        if (after == text || after > end || !(x >= 0 && x <= 1) ||
            (after < end && (*after != ',' || after + 1 == end)))
            return dsc_fail(err, s->status,
                            "%s: depth %d, rank %d: a number from 0 to 1 is expected", s->what,
                            depth, *ranks);
        if (*ranks == DSC_TREE_RANKS)
            return dsc_fail(err, s->status, "%s: depth %d has more than %d ranks", s->what, depth,
                            DSC_TREE_RANKS);
        row[(*ranks)++] = x;
        for (text = after < end ? after + 1 : end; text < end && strchr(blank, *text);)
            text++;
    }
    return DSC_OK;
}

// Parses rows into rate[DSC_TREE_DEPTH][DSC_TREE_RANKS], which is zeroed.
static int parse_rows(const source *s, const char *text, double *rate, dsc_tree_acceptance *dist,
                      dsc_error *err)
{
    int rc = DSC_OK, ranks;
    while (!rc && *text) {
        size_t length = strcspn(text, (char[]){s->end, '\0'});
        double row[DSC_TREE_RANKS];
        rc = parse_row(s, text, length, dist->depths + 1, row, &ranks, err);
        if (!rc && ranks && dist->depths == DSC_TREE_DEPTH)
            rc = dsc_fail(err, s->status, "%s: more than %d depths", s->what, DSC_TREE_DEPTH);
        if (!rc && ranks) {
            memcpy(rate + dist->depths++ * DSC_TREE_RANKS, row, (size_t)ranks * sizeof *row);
            dist->ranks = ranks > dist->ranks ? ranks : dist->ranks;
        }
        text += length + (text[length] == s->end);
    }
    if (!rc && !dist->depths)
        rc = dsc_fail(err, s->status, "%s: there is no acceptance rate", s->what);
    return rc;
}

int dsc_tree_acceptance_load(dsc_tree_acceptance *out, double **rate, const char *text,
                             dsc_error *err)
{
    bool list = strspn(text, "0123456789.,/ +-eE") == strlen(text);
    source s = {list ? "acceptances" : text, list ? DSC_EUSAGE : DSC_EINPUT, list ? '/' : '\n'};
    char *file = NULL;
    dsc_error bad;
    *out = (dsc_tree_acceptance){0};
    *rate = NULL;
    int rc = list ? DSC_OK : read_text(&file, text, err);
    if (!rc)
        rc = dsc_new(rate, (size_t)DSC_TREE_DEPTH * DSC_TREE_RANKS, err);
    if (!rc)
        rc = parse_rows(&s, list ? text : file, *rate, out, err);
    for (int d = 1; d < out->depths; d++) // rows of `ranks`, one after the other
        memmove(*rate + d * out->ranks, *rate + d * DSC_TREE_RANKS,
                (size_t)out->ranks * sizeof **rate);
    out->rate = *rate;
    if (!rc && dsc_tree_acceptance_check(out, &bad))
        rc = dsc_fail(err, s.status, "%s: %.900s", s.what, bad.message);
    free(file);
    if (rc) {
        free(*rate);
        *rate = NULL;
    }
    return rc;
}
