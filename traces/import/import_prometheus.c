// SPDX-License-Identifier: Apache-2.0
// Reads totals from snapshots of a server's metrics page in Prometheus' text format: the difference
// of two snapshots, or one snapshot since the server started. Every set of labels is counted
// separately. The counters, with or without "_total", are
//   PREFIX:spec_decode_num_drafts                        drafts verified
//   PREFIX:spec_decode_num_draft_tokens                  draft tokens
//   PREFIX:spec_decode_num_accepted_tokens               accepted draft tokens, bonus excluded
//   PREFIX:spec_decode_num_accepted_tokens_per_pos{position="0"}   drafts whose token 0 was
//   accepted
// Other metrics are ignored. Source: vllm/v1/spec_decode/metrics.py.
#include "traces/files/metrics_page.h"
#include "traces/import/totals.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POSITIONS_MAX = 256, SERIES_MAX = 1024, SNAPSHOTS = 2 };

typedef enum counter { DRAFTS, DRAFT_TOKENS, ACCEPTED_TOKENS, PER_POSITION, COUNTERS } counter;
static const char *const counter_name[COUNTERS] = {"drafts", "draft_tokens", "accepted_tokens",
                                                   "accepted_tokens_per_pos"};

// The counters of one set of labels. -1: not in the snapshot.
typedef struct series {
    char *labels; // sorted, without the position
    int64_t total[SNAPSHOTS][PER_POSITION];
    int64_t accepted_at[SNAPSHOTS][POSITIONS_MAX];
} series;

typedef struct page {
    series *item; // [count]
    size_t count, capacity;
    int snapshot;
} page;

typedef struct sample {
    counter counter;
    int64_t position; // for PER_POSITION, else -1
    char labels[DSC_METRIC_BYTES];
    int64_t value;
} sample;

static int find_series(page *p, const char *labels, series **out, dsc_error *err)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->item[i].labels, labels) == 0) {
            *out = &p->item[i];
            return DSC_OK;
        }
    if (p->count == SERIES_MAX)
        return dsc_fail(err, DSC_EINPUT, "the page has more than the limit of %d sets of labels",
                        SERIES_MAX);
    int rc = dsc_resize(&p->item, &p->capacity, p->count + 1, err);
    if (rc)
        return rc;
    *out = &p->item[p->count];
    memset(*out, 0xff, sizeof **out); // all counters -1
    rc = dsc_strndup(&(*out)->labels, labels, strlen(labels), err);
    p->count += !rc;
    return rc;
}

static int keep_sample(page *p, const sample *x, dsc_error *err)
{
    series *s = NULL;
    int rc = find_series(p, x->labels, &s, err);
    if (rc)
        return rc;
    int64_t *at = x->counter == PER_POSITION ? &s->accepted_at[p->snapshot][x->position]
                                             : &s->total[p->snapshot][x->counter];
    if (*at >= 0)
        return dsc_fail(err, DSC_EINPUT, "the counter occurs twice with the same labels");
    *at = x->value;
    return DSC_OK;
}

// --- a line ------------------------------------------------------------------------------------

// The counter of that name, or COUNTERS for another metric.
static counter find_counter(const char *name, size_t length)
{
    static const char stem[] = "spec_decode_num_";
    const size_t skip = sizeof stem - 1;
    dsc_metric_stem(&name, &length);
    if (length <= skip || memcmp(name, stem, skip) != 0)
        return COUNTERS;
    name += skip;
    length -= skip;
    dsc_metric_without(name, &length, "_total");
    counter c = 0;
    while (c < COUNTERS &&
           (strlen(counter_name[c]) != length || memcmp(counter_name[c], name, length) != 0))
        c++;
    return c;
}

static bool is_counter(const char *name, size_t length)
{
    return find_counter(name, length) != COUNTERS;
}

static int read_position(const char *value, sample *x, dsc_error *err)
{
    char *end;
    long n = strtol(value, &end, 10);
    if (!isdigit((unsigned char)*value) || *end != '"' || n >= POSITIONS_MAX)
        return dsc_fail(err, DSC_EINPUT, "position must be a number from 0 to %d",
                        POSITIONS_MAX - 1);
    x->position = n;
    return DSC_OK;
}

static int read_count(const dsc_metric_sample *m, sample *x, dsc_error *err)
{
    if (!(m->value >= 0) || m->value > 0x1p53 || m->value != floor(m->value))
        return dsc_fail(err, DSC_EINPUT,
                        "a count must be a whole number from 0 to 2^53, not '%.60s'", m->text);
    x->value = (int64_t)m->value;
    return DSC_OK;
}

static int read_sample(void *user, const dsc_metric_sample *m, dsc_error *err)
{
    sample x = {.counter = find_counter(m->name, m->length), .position = -1};
    const char *position = dsc_metric_label(m, "position");
    int rc = position ? read_position(position, &x, err) : DSC_OK;
    if (!rc)
        rc = read_count(m, &x, err);
    if (!rc && (x.counter == PER_POSITION) != (x.position >= 0))
        rc = dsc_fail(err, DSC_EINPUT, "label 'position' %s",
                      x.position < 0 ? "is missing" : "is not expected here");
    dsc_metric_join(m, "position", x.labels);
    return rc ? rc : keep_sample(user, &x, err);
}

// --- the difference ----------------------------------------------------------------------------

// *out = after - before, where a counter that the first page lacks counts as 0; -1 when both pages
// lack it. DSC_EINPUT when the counter decreased.
static int subtract(int64_t before, int64_t after, const char *name, int64_t *out, dsc_error *err)
{
    *out = -1;
    if (after < 0 && before < 0)
        return DSC_OK;
    if (after < before)
        return dsc_fail(err, DSC_EINPUT,
                        "counter %s decreased or disappeared: the server was restarted between the "
                        "snapshots, or they are in the wrong order",
                        name);
    *out = after - (before > 0 ? before : 0);
    return DSC_OK;
}

// Computes the histogram from the counts per position: drafts with exactly m accepted tokens.
static int read_histogram(const int64_t *accepted_at, dsc_totals *t, dsc_error *err)
{
    int64_t before = t->drafts;
    for (size_t d = 0; d + 1 < t->histogram_length; d++) {
        if (accepted_at[d] < 0)
            return dsc_fail(err, DSC_EINPUT, "position %zu is missing, but later ones are present",
                            d);
        if (accepted_at[d] > before)
            return dsc_fail(err, DSC_EINPUT,
                            "position %zu was accepted %lld times, but the position before it only "
                            "%lld times",
                            d, (long long)accepted_at[d], (long long)before);
        t->histogram[d] = before - accepted_at[d];
        before = accepted_at[d];
    }
    t->histogram[t->histogram_length - 1] = before;
    return DSC_OK;
}

static int add_series(dsc_totals_list *out, const series *s, dsc_error *err)
{
    int64_t total[PER_POSITION], accepted_at[POSITIONS_MAX];
    size_t positions = 0;
    int rc = DSC_OK;
    for (counter c = 0; c < PER_POSITION && !rc; c++) {
        rc = subtract(s->total[0][c], s->total[1][c], counter_name[c], &total[c], err);
        if (!rc && total[c] < 0)
            rc =
                dsc_fail(err, DSC_EINPUT, "counter spec_decode_num_%s is missing", counter_name[c]);
    }
    for (size_t d = 0; d < POSITIONS_MAX && !rc; d++) {
        rc = subtract(s->accepted_at[0][d], s->accepted_at[1][d], counter_name[PER_POSITION],
                      &accepted_at[d], err);
        if (accepted_at[d] >= 0)
            positions = d + 1;
    }
    dsc_totals *t;
    if (!rc)
        rc = dsc_totals_add(out, *s->labels ? s->labels : "server", positions ? positions + 1 : 0,
                            &t, err);
    if (rc)
        return rc;
    t->drafts = total[DRAFTS];
    t->drafted = total[DRAFT_TOKENS];
    t->accepted = total[ACCEPTED_TOKENS];
    if (positions)
        rc = read_histogram(accepted_at, t, err);
    return rc ? rc : dsc_totals_check(t, err);
}

static int read_pages(dsc_totals_list *out, const char *const *paths, size_t count,
                      const dsc_totals_options *options, dsc_error *err)
{
    (void)options; // parts of a page cannot be skipped
    if (count > SNAPSHOTS)
        return dsc_fail(err, DSC_EUSAGE, "prometheus takes one or two snapshots, not %zu files",
                        count);
    page p = {.snapshot = count == 1 ? 1 : 0};
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc; i++, p.snapshot++)
        rc = dsc_metrics_page_read(paths[i], is_counter, read_sample, &p, err);
    if (!rc && p.count == 0)
        rc =
            dsc_fail(err, DSC_EINPUT,
                     "%s: no counter spec_decode_num_*, which vLLM's page has while speculation is "
                     "on; acceptance that another engine's page has is given as --acceptance "
                     "al:LENGTH@K or rate:R@K",
                     paths[count - 1]);
    for (size_t i = 0; i < p.count && !rc; i++) {
        rc = add_series(out, &p.item[i], err);
        if (rc)
            dsc_error_prefix(err, rc, "%s: {%s}", paths[count - 1], p.item[i].labels);
    }
    for (size_t i = 0; i < p.count; i++)
        free(p.item[i].labels);
    free(p.item);
    return rc;
}

// The page begins with a comment, "# HELP ...", or with a counter.
static bool probe(const char *line, size_t length)
{
    size_t name = 0;
    while (name < length && line[name] != '{' && line[name] != ' ')
        name++;
    return length > 0 && (*line == '#' || is_counter(line, name));
}

const dsc_totals_driver dsc_totals_prometheus = {
    .name = "prometheus",
    .summary = "snapshots of a server's metrics page: spec_decode_num_* (imported as a table)",
    .probe = probe,
    .read = read_pages,
};
