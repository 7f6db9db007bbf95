// SPDX-License-Identifier: Apache-2.0
// The tables that the shards of a sweep leave: their columns, one row of counts, a reader that
// takes up unfinished tables, and sums over rows.
#include "sim/sweep/shard_table.h"

#include "base/columns.h"
#include "base/file.h"
#include "base/number.h"
#include "sim/sweep/row_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Lists of the counts, a column each. The list `whole` is as long as the histogram.
enum { HISTOGRAM, LENGTHS, WHOLE, WIDTH, OVERLAP, LISTS };
static const size_t list_at[LISTS] = {
    offsetof(dsc_counts, histogram), offsetof(dsc_counts, lengths), offsetof(dsc_counts, whole),
    offsetof(dsc_counts, width), offsetof(dsc_counts, parallel_steps)};
_Static_assert(sizeof(dsc_counts) == DSC_COUNTS_TOTALS * sizeof(int64_t) +
                                         LISTS * sizeof(int64_t *) + (LISTS - 1) * sizeof(int64_t) +
                                         sizeof(dsc_expected *),
               "a list of dsc_counts is missing in the tables of shards");

static const dsc_column columns[] = {
    {"configuration", DSC_CELL_INT, "number in the grid, from 0, the last parameter fastest"},
    {"group", DSC_CELL_INT,
     "requests of the block that are counted; 0: all, i: those with value i of the field, from 1"},
    {"request", DSC_CELL_INT, "first request of the block, from 0"},
    {"totals", DSC_CELL_LIST, "totals of the block, in the order of struct dsc_counts"},
    {DSC_COL_ACCEPT_HISTOGRAM, DSC_CELL_LIST,
     "target calls that accepted 0, 1, 2, ... draft tokens"},
    {DSC_COL_DRAFT_LENGTH_HISTOGRAM, DSC_CELL_LIST,
     "target calls whose draft had 0, 1, 2, ... tokens in sequence"},
    {"whole_draft_histogram", DSC_CELL_LIST,
     "target calls that accepted 0, 1, 2, ... draft tokens in sequence and whose draft had no "
     "more"},
    {DSC_COL_WIDTH_HISTOGRAM, DSC_CELL_LIST,
     "target calls on 1, 2, 3, ... tokens, if the cost model needs them"},
    {DSC_COL_OVERLAP_HISTOGRAM, DSC_CELL_LIST,
     "for a method that drafts while the target verifies: steps by calls of the draft model (0, 1, "
     "...) and tokens of the target (1, 2, ...), a square matrix by rows"},
    {"expected", DSC_CELL_LIST,
     "expected counts: the totals in the order of struct dsc_expected, then the lists in the order "
     "of the columns; empty where the counts are integers"},
};
// The columns before the totals.
enum { CONFIGURATION, GROUP, REQUEST, KEYS };
enum { COLUMNS = sizeof columns / sizeof *columns, COMMENT_BYTES = 1 << 20 };

// The address of list j.
static int64_t **list_of(const dsc_counts *c, int j)
{
    return (int64_t **)((char *)(uintptr_t)c + list_at[j]);
}

static void list_lengths(const dsc_counts *c, int64_t length[LISTS])
{
    length[HISTOGRAM] = c->histogram_length;
    length[LENGTHS] = c->lengths_length;
    length[WHOLE] = c->whole ? c->histogram_length : 0;
    length[WIDTH] = c->width_length;
    length[OVERLAP] = c->parallel_length * c->parallel_length;
}

int dsc_shard_columns(dsc_table *t, dsc_error *err)
{
    return dsc_table_add_columns(t, columns, COLUMNS, err);
}

// Copies n numbers; `from` may be NULL when n is 0.
static double *append(double *to, const double *from, size_t n)
{
    if (n)
        memcpy(to, from, n * sizeof *to);
    return to + n;
}

// Totals, then histogram, lengths and whole; *list owned by the caller.
static int list_expected(const dsc_counts *counts, double **list, int64_t *length, dsc_error *err)
{
    const dsc_expected *x = counts->expected;
    const size_t n = (size_t)counts->histogram_length,
                 lengths = x->lengths ? (size_t)counts->lengths_length : 0;
    int rc = dsc_new(list, DSC_EXPECTED_TOTALS + 2 * n + lengths, err);
    if (rc)
        return rc;
    double *end = append(*list, (const double *)x, DSC_EXPECTED_TOTALS);
    end = append(end, x->histogram, n);
    end = append(end, x->lengths, lengths);
    end = append(end, x->whole, lengths ? n : 0);
    *length = end - *list;
    return DSC_OK;
}

// With expectations the zeros are written, because they give the lengths of the lists. Otherwise a
// list ends with the last number that is not 0.
int dsc_shard_row(dsc_table *t, int64_t configuration, int64_t group, int64_t request,
                  const dsc_counts *counts, dsc_error *err)
{
    const bool counted = !counts->expected;
    const bool trims[LISTS] = {[HISTOGRAM] = counted, [LENGTHS] = counted, [WIDTH] = counted};
    int64_t length[LISTS];
    dsc_cell row[COLUMNS] = {
        dsc_cell_int(configuration),
        dsc_cell_int(group),
        dsc_cell_int(request),
        {.type = DSC_CELL_LIST, .list = (const int64_t *)counts, .i = DSC_COUNTS_TOTALS}};
    dsc_cell *expected = &row[KEYS + 1 + LISTS];
    double *reals = NULL;
    *expected = (dsc_cell){.type = DSC_CELL_LIST};
    int rc = counted ? DSC_OK : list_expected(counts, &reals, &expected->i, err);
    if (rc)
        return rc;
    expected->reals = reals;
    list_lengths(counts, length);
    for (int j = 0; j < LISTS; j++) {
        const int64_t *number = *list_of(counts, j);
        if (j == WHOLE)
            length[j] = length[LENGTHS] ? length[HISTOGRAM] : 0;
        while (trims[j] && length[j] > 0 && !number[length[j] - 1])
            length[j]--;
        row[KEYS + 1 + j] = (dsc_cell){.type = DSC_CELL_LIST, .list = number, .i = length[j]};
    }
    rc = dsc_table_add_row(t, row, err);
    free(reals);
    return rc;
}

// --- sums --------------------------------------------------------------------------------------

int dsc_sums_init(dsc_sums *s, size_t configurations, size_t groups, dsc_error *err)
{
    dsc_counts *counts;
    const size_t each = 1 + groups;
    int rc = dsc_new(&counts, configurations * each, err);
    *s = (dsc_sums){counts, rc ? 0 : configurations * each, each};
    return rc;
}

void dsc_sums_fini(dsc_sums *s)
{
    for (size_t c = 0; c < s->count; c++) {
        for (int j = 0; j < LISTS; j++)
            free(*list_of(&s->counts[c], j));
        free(s->counts[c].expected);
    }
    free(s->counts);
    *s = (dsc_sums){0};
}

// Extends a list of `had` numbers to `need` with zeros.
static int lengthen(int64_t **number, int64_t had, int64_t need, dsc_error *err)
{
    size_t capacity = (size_t)had;
    int rc = need > had ? dsc_resize(number, &capacity, (size_t)need, err) : DSC_OK;
    if (!rc && need > had)
        memset(*number + had, 0, (size_t)(need - had) * sizeof **number);
    return rc;
}

// One block has all requests of a configuration, so a sum of expectations has one term.
static int room_for_expected(dsc_counts *sum, dsc_error *err)
{
    const size_t n = (size_t)sum->histogram_length, lengths = (size_t)sum->lengths_length;
    if (sum->expected)
        return dsc_fail(err, DSC_EINPUT, "the expectations of one configuration are in two blocks");
    int rc = dsc_alloc(&sum->expected, 1,
                       sizeof *sum->expected + (2 * n + lengths) * sizeof(double), err);
    if (rc)
        return rc;
    double *list = (double *)(sum->expected + 1);
    sum->expected->histogram = list;
    sum->expected->whole = lengths ? list + n : NULL;
    sum->expected->lengths = lengths ? list + 2 * n : NULL;
    return DSC_OK;
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int dsc_sums_add(dsc_counts *sum, const dsc_counts *x, dsc_error *err)
{
    int64_t had[LISTS], need[LISTS];
    int rc = DSC_OK;
    list_lengths(sum, had);
    // One number at least: the histograms of a result are never empty.
    sum->histogram_length = largest(had[HISTOGRAM], largest(x->histogram_length, 1));
    sum->lengths_length = largest(had[LENGTHS], largest(x->lengths_length, 1));
    sum->width_length = largest(had[WIDTH], x->width_length);
    if (!had[OVERLAP]) // its size is the configuration's
        sum->parallel_length = x->parallel_length;
    list_lengths(sum, need);
    need[WHOLE] = need[HISTOGRAM];
    for (int j = 0; j < LISTS && !rc; j++)
        rc = lengthen(list_of(sum, j), had[j], need[j], err);
    if (!rc && x->parallel_length && x->parallel_length != sum->parallel_length)
        rc = dsc_fail(err, DSC_EINPUT, "overlap_histogram has two sizes for one configuration");
    if (!rc && x->expected)
        rc = room_for_expected(sum, err);
    if (!rc)
        dsc_counts_add(sum, x);
    return rc;
}

// --- reading -----------------------------------------------------------------------------------

bool dsc_shard_reader_line(dsc_shard_reader *r, const char **line, size_t *length)
{
    *line = (const char *)r->map + r->at;
    const char *end = r->at < r->bytes ? memchr(*line, '\n', r->bytes - r->at) : NULL;
    if (!end)
        return false;
    *length = (size_t)(end - *line);
    r->at += *length + 1;
    r->line++;
    return true;
}

bool dsc_shard_reader_ended(const dsc_shard_reader *r)
{
    return r->at == r->bytes;
}

static int take_comment(dsc_shard_reader *r, char *text, dsc_error *err)
{
    char *key = text + 2, *colon = strncmp(text, "# ", 2) ? NULL : strstr(key, ": ");
    if (!colon)
        return dsc_fail(err, DSC_EINPUT, "not a comment");
    *colon = '\0';
    const char *value = colon + 2;
    if (strncmp(key, "column ", 7) == 0 || strcmp(key, DSC_ROW_TYPES) == 0)
        return dsc_table_comment(&r->more, key, value, err);
    if (strcmp(key, "split") == 0)
        return dsc_split_parse(&r->split, value, err);
    return dsc_table_comment(&r->head, key, value, err);
}

static bool is_header(const char *line, size_t length)
{
    char header[256];
    size_t n = 0;
    for (size_t c = 0; c < COLUMNS; c++)
        n +=
            (size_t)snprintf(header + n, sizeof header - n, "%s%s", c ? "\t" : "", columns[c].name);
    return length == n && memcmp(line, header, n) == 0;
}

static int read_head(dsc_shard_reader *r, dsc_error *err)
{
    const char *line;
    size_t length;
    int rc = DSC_OK;
    while (!rc && (r->begun = dsc_shard_reader_line(r, &line, &length)) && length && *line == '#') {
        char *text = NULL;
        rc = length > COMMENT_BYTES ? dsc_fail(err, DSC_EINPUT, "a comment is too long")
                                    : dsc_strndup(&text, line, length, err);
        if (!rc)
            rc = take_comment(r, text, err);
        free(text);
        if (rc)
            return dsc_error_prefix(err, rc, "%s:%" PRId64, r->path, r->line);
    }
    if (r->begun && r->split.shards && !is_header(line, length))
        rc = dsc_row_table_columns(&r->head, &r->more, line, length, &r->numbered, err);
    if (rc)
        return dsc_error_prefix(err, rc, "%s:%" PRId64, r->path, r->line);
    if (!r->begun || !r->split.shards || (!r->numbered && !is_header(line, length)))
        return dsc_fail(err, DSC_EINPUT,
                        "%s is not the table of a shard (sweep --shard and serve --shard write "
                        "such tables)",
                        r->path);
    return DSC_OK;
}

int dsc_shard_reader_open(dsc_shard_reader *r, const char *path, dsc_error *err)
{
    *r = (dsc_shard_reader){.path = path};
    int rc = dsc_map_file(&r->map, &r->bytes, path, 1, "a table", err);
    return rc ? rc : read_head(r, err);
}

void dsc_shard_reader_close(dsc_shard_reader *r)
{
    if (r->map)
        munmap(r->map, r->bytes);
    dsc_table_fini(&r->head);
    dsc_table_fini(&r->more);
    free(r->number);
    free(r->real);
    *r = (dsc_shard_reader){0};
}

// The sum of DSC_MAX_CELLS such numbers does not overflow.
static const int64_t MOST = INT64_MAX / DSC_MAX_CELLS;

// A number in [*at, end) of at least one digit; *at moves after it.
static bool parse_number(const char **at, const char *end, int64_t *out)
{
    const char *p = *at;
    int64_t x = 0;
    while (p < end && *p >= '0' && *p <= '9' && x <= MOST)
        x = 10 * x + (*p++ - '0');
    bool ok = p > *at && x <= MOST;
    *at = p;
    *out = x;
    return ok;
}

// A real number >= 0 up to `end`, which a tab or a line end follows.
static bool parse_real(const char **at, const char *end, double *out)
{
    char *rest = NULL;
    *out = **at >= '0' && **at <= '9' ? dsc_strtod(*at, &rest) : (double)NAN;
    *at = rest;
    return isfinite(*out) && rest <= end;
}

// Appends the numbers that ';' joins, up to a tab or the end, to r->number or r->real; *at moves
// after them.
static int parse_list(dsc_shard_reader *r, bool real, const char **at, const char *end,
                      size_t *count, dsc_error *err)
{
    bool more = *at < end && **at != '\t';
    for (; more; ++*count) {
        int rc = real ? dsc_resize(&r->real, &r->real_capacity, *count + 1, err)
                      : dsc_resize(&r->number, &r->capacity, *count + 1, err);
        if (rc)
            return rc;
        if (!(real ? parse_real(at, end, &r->real[*count])
                   : parse_number(at, end, &r->number[*count])))
            return DSC_EINPUT;
        more = *at < end && **at == ';';
        *at += more;
    }
    return DSC_OK;
}

// The keys, and the totals and lists, in sequence in r->number: list j is between
// end[j] and end[j + 1]. Expectations are in r->real, *reals of them.
static int parse_row(dsc_shard_reader *r, const char *line, size_t length, int64_t key[KEYS],
                     size_t end[1 + LISTS], size_t *reals, dsc_error *err)
{
    const char *at = line, *last = line + length;
    size_t n = 0;
    for (int i = 0; i < KEYS; i++) {
        if (!parse_number(&at, last, &key[i]) || at == last || *at++ != '\t')
            return DSC_EINPUT;
    }
    for (int j = 0; j < 1 + LISTS; j++) {
        if (j && (at == last || *at++ != '\t'))
            return DSC_EINPUT;
        int rc = parse_list(r, false, &at, last, &n, err);
        if (rc)
            return rc;
        end[j] = n;
    }
    *reals = 0;
    if (at == last || *at++ != '\t')
        return DSC_EINPUT;
    int rc = parse_list(r, true, &at, last, reals, err);
    if (rc)
        return rc;
    const size_t accepts = end[HISTOGRAM + 1] - end[HISTOGRAM],
                 lengths = end[LENGTHS + 1] - end[LENGTHS], whole = end[WHOLE + 1] - end[WHOLE];
    const bool complete = !*reals || *reals == DSC_EXPECTED_TOTALS + accepts + lengths + whole,
               fits = whole == (lengths ? accepts : 0);
    return complete && fits && at == last && end[0] == DSC_COUNTS_TOTALS ? DSC_OK : DSC_EINPUT;
}

static int read_row(dsc_shard_reader *r, const char *line, size_t length, int64_t configuration,
                    int64_t group, const dsc_cell_range *cell, dsc_sums *sums, dsc_error *err)
{
    int64_t key[KEYS];
    size_t end[1 + LISTS];
    size_t reals;
    dsc_counts x = {0};
    dsc_expected expected;
    int rc = parse_row(r, line, length, key, end, &reals, err);
    if (rc == DSC_EINPUT)
        return dsc_fail(err, rc, "%s:%" PRId64 ": not a row of counts", r->path, r->line);
    if (rc)
        return rc;
    if (key[CONFIGURATION] != configuration || key[GROUP] != group || key[REQUEST] != cell->request)
        return dsc_fail(err, DSC_EINPUT,
                        "%s:%" PRId64 ": the row is of configuration %" PRId64 ", group %" PRId64
                        " and requests from %" PRId64 ", expected are %" PRId64 ", %" PRId64
                        " and %" PRId64,
                        r->path, r->line, key[CONFIGURATION], key[GROUP], key[REQUEST],
                        configuration, group, cell->request);
    memcpy(&x, r->number, DSC_COUNTS_TOTALS * sizeof *r->number);
    int64_t n[LISTS];
    for (int j = 0; j < LISTS; j++) {
        n[j] = (int64_t)(end[j + 1] - end[j]);
        *list_of(&x, j) = n[j] ? r->number + end[j] : NULL;
    }
    x.histogram_length = n[HISTOGRAM];
    x.lengths_length = n[LENGTHS];
    x.width_length = n[WIDTH];
    if (reals) {
        memcpy(&expected, r->real, DSC_EXPECTED_TOTALS * sizeof(double));
        expected.histogram = r->real + DSC_EXPECTED_TOTALS;
        expected.lengths = n[WHOLE] ? expected.histogram + n[HISTOGRAM] : NULL;
        expected.whole = n[WHOLE] ? expected.lengths + n[LENGTHS] : NULL;
        x.expected = &expected;
    }
    while (x.parallel_length * x.parallel_length < n[OVERLAP])
        x.parallel_length++;
    if (x.parallel_length * x.parallel_length != n[OVERLAP])
        return dsc_fail(err, DSC_EINPUT,
                        "%s:%" PRId64 ": overlap_histogram has %" PRId64
                        " elements, which is not a square",
                        r->path, r->line, n[OVERLAP]);
    const int64_t block = cell->request_end - cell->request;
    if (group ? x.requests > block : x.requests != block)
        return dsc_fail(err, DSC_EINPUT,
                        "%s:%" PRId64 ": counts of %" PRId64 " requests, the block has %" PRId64,
                        r->path, r->line, x.requests, block);
    return sums ? dsc_sums_add(&sums->counts[(size_t)configuration * sums->each + (size_t)group],
                               &x, err)
                : DSC_OK;
}

int dsc_shard_reader_cell(dsc_shard_reader *r, const dsc_cell_range *cell, size_t groups,
                          dsc_sums *sums, bool *whole, dsc_error *err)
{
    const char *line;
    size_t length;
    const int64_t each = 1 + (int64_t)groups,
                  rows = (cell->configuration_end - cell->configuration) * each;
    int rc = DSC_OK;
    int64_t i = 0;
    for (; !rc && i < rows && dsc_shard_reader_line(r, &line, &length); i++)
        rc = read_row(r, line, length, cell->configuration + i / each, i % each, cell, sums, err);
    *whole = i == rows;
    return rc;
}
