// SPDX-License-Identifier: Apache-2.0
// Acceptance rates from text, files and tables; sim/acceptance.h. Every form becomes conditional
// rates: h_j = r_j/r_(j-1) of unconditional ones, the Kaplan-Meier estimate of a histogram, and for
// a mean length the i.i.d. rate that has it (Leviathan, Kalman and Matias 2023, Eq. (1)).
#include "sim/acceptance.h"

#include "base/columns.h"
#include "base/file.h"
#include "base/number.h"
#include "base/table.h"
#include "theory/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum form { IID, RATES, CONDITIONAL, LENGTH, RATE, HISTOGRAM, TABLE, FORMS } form;
enum { LATER, REQUEST_SD, ITEMS };
// clang-format off
#define OPTION_LATER                                                                               \
    {.name = "later", .kind = DSC_OPTION_REAL, .metavar = "H", .least = 0, .most = 1,              \
     .help = "conditional rate of all later positions (default: longer drafts are refused)"}
#define OPTION_REQUEST_SD                                                                          \
    {.name = "request-sd", .kind = DSC_OPTION_REAL, .metavar = "S", .initial = "0", .least = 0,    \
     .most = 10, .help = "standard deviation of an effect of each request on the logit of its "    \
     "rates (theory length --trace fits it); 0: requests do not differ"}
static const dsc_option later[] = {OPTION_LATER}, effect[] = {OPTION_REQUEST_SD},
    both[] = {OPTION_LATER, OPTION_REQUEST_SD};
static const dsc_spec_form forms[FORMS] = {
    [IID] = {"iid", "iid:ALPHA[,request-sd=S]", "the same acceptance rate at every position",
             effect, 1},
    [RATES] = {"rates", "rates:R1,R2,...[,later=H]",
               "shares of all drafts by position, which never rise: vLLM's per-position rates",
               later, 1},
    [CONDITIONAL] = {"conditional", "conditional:H1,H2,...[,later=H][,request-sd=S]",
                     "rates by position of the drafts whose earlier tokens were accepted", both, 2},
    [LENGTH] = {"al", "al:LENGTH@K",
                "mean acceptance length, bonus included, of drafts of K tokens", NULL, 0},
    [RATE] = {"rate", "rate:R@K", "accepted / drafted tokens of drafts of K tokens", NULL, 0},
    [HISTOGRAM] = {"histogram", "histogram:N0,N1,...[,later=H]",
                   "numbers of drafts that accepted 0, 1, ..., all of their tokens", later, 1},
    [TABLE] = {"table", "table:FILE[,later=H][,COLUMN=VALUE]",
               "totals of a server or results, as a file; the row with this value, or the only one",
               later, 1},
};
// clang-format on

const dsc_spec_form *dsc_acceptance_form(size_t i)
{
    return i < FORMS ? &forms[i] : NULL;
}

void dsc_acceptance_rates_fini(dsc_acceptance_rates *r)
{
    if (r)
        free(r->conditional_rate);
}

// --- numbers -------------------------------------------------------------------------------------

typedef struct numbers {
    double *x; // [count]
    bool *percent;
    size_t count, capacity, percent_capacity;
} numbers;

static void numbers_fini(numbers *n)
{
    free(n->x);
    free(n->percent);
}

static const char blank[] = " \t\r\n";

static const char *skip(const char *p)
{
    for (p += strspn(p, blank); *p == '#'; p += strspn(p, blank)) // a comment of a file
        p += strcspn(p, "\n");
    return p;
}

// Returns whether text consists of what lists of numbers consist of.
static bool looks_like_numbers(const char *text)
{
    return text[strspn(text, "0123456789.eE+-%,;()[] \t\r\n")] == '\0' &&
           strpbrk(text, "0123456789");
}

// "(0.917, 0.837)", "[.9;.8]", "84.4 % 59.9 %", a number per line.
static int read_numbers(numbers *out, const char *text, dsc_error *err)
{
    const char *p = skip(text);
    const char close = *p == '(' ? ')' : *p == '[' ? ']' : '\0';
    p = skip(p + (close != '\0'));
    for (bool more = true; more;) {
        char *end;
        const double x = dsc_strtod(p, &end);
        const size_t n = strcspn(p, ",; \t\r\n)]%");
        if (end != p + n || !n || !isfinite(x) || strspn(p, "0123456789.eE+-") != n)
            return dsc_fail(err, DSC_EUSAGE, "a number is expected where '%.*s' stands",
                            *p ? (int)(n < 40 ? n + !n : 40) : 3, *p ? p : "end");
        p = skip(end);
        const bool percent = *p == '%';
        p = skip(p + percent);
        int rc = dsc_resize(&out->x, &out->capacity, out->count + 1, err);
        rc = rc ?: dsc_resize(&out->percent, &out->percent_capacity, out->count + 1, err);
        if (rc)
            return rc;
        out->x[out->count] = x;
        out->percent[out->count++] = percent;
        if (out->count > DSC_ACCEPTANCE_POSITIONS + 1)
            return dsc_fail(err, DSC_EUSAGE, "acceptance rates for more than %d positions",
                            DSC_ACCEPTANCE_POSITIONS);
        const bool separator = *p == ',' || *p == ';';
        more = *p && *p != close;
        p = skip(p + separator);
    }
    if (close && *p == close)
        p = skip(p + 1);
    else if (close)
        return dsc_fail(err, DSC_EUSAGE, "the list has no '%c'", close);
    return *p ? dsc_fail(err, DSC_EUSAGE, "'%.40s' follows the list", p) : DSC_OK;
}

// Turns percentages into fractions. They need no sign where no fraction can be meant.
static int read_fractions(numbers *n, dsc_error *err)
{
    enum { CLEAR = 5 }; // percent: an unsigned number above is no fraction that was mistyped
    bool percent = false;
    double most = 0;
    for (size_t i = 0; i < n->count; i++) {
        percent |= n->percent[i];
        most = fmax(most, n->percent[i] ? 0 : n->x[i]);
    }
    if (!percent && most > 1 && most < CLEAR)
        return dsc_fail(err, DSC_EUSAGE,
                        "%g is neither a rate from 0 to 1 nor clearly a percentage; write %g%% if "
                        "it is one",
                        most, most);
    percent |= most > 1;
    for (size_t i = 0; i < n->count; i++) {
        const double x = n->x[i];
        if (percent && !n->percent[i] && x > 0 && x <= 1)
            return dsc_fail(err, DSC_EUSAGE,
                            "%g stands among percentages: write %g%%, or all of them as fractions",
                            x, x);
        if (!(x >= 0 && x <= (percent ? 100 : 1)))
            return dsc_fail(err, DSC_EUSAGE,
                            "an acceptance rate is from 0 to 1, or 0 to 100%%, not %g%s", x,
                            percent ? "%" : "");
        n->x[i] = percent ? x / 100 : x;
    }
    return DSC_OK;
}

// --- rates by position ---------------------------------------------------------------------------

static int put_rates(dsc_acceptance_rates *r, size_t positions, dsc_error *err)
{
    if (!positions || positions > DSC_ACCEPTANCE_POSITIONS)
        return dsc_fail(err, DSC_EUSAGE, "acceptance rates of %zu positions; 1 to %d are possible",
                        positions, DSC_ACCEPTANCE_POSITIONS);
    r->positions = (int)positions;
    r->one_draft = true;
    return dsc_new(&r->conditional_rate, positions, err);
}

static int put_conditional(dsc_acceptance_rates *r, const double *rate, size_t count,
                           dsc_error *err)
{
    int rc = put_rates(r, count, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = rate[i] >= 0 && rate[i] <= 1
                 ? (r->conditional_rate[i] = rate[i], DSC_OK)
                 : dsc_fail(err, DSC_EUSAGE, "acceptance rate %zu, %g, is not in [0, 1]", i + 1,
                            rate[i]);
    return rc;
}

static int put_unconditional(dsc_acceptance_rates *r, const double *rate, size_t count,
                             dsc_error *err)
{
    static const double rounding = 1e-12; // of expectations
    int rc = put_rates(r, count, err);
    double before = 1;
    for (size_t i = 0; i < count && !rc; before = rate[i++])
        if (!(rate[i] >= 0 && rate[i] <= before + rounding))
            rc = dsc_fail(err, DSC_EUSAGE,
                          "the rate of position %zu, %g, is above %g of the position before it, "
                          "which shares of all drafts never are; conditional: takes rates of the "
                          "drafts whose earlier tokens were accepted",
                          i + 1, rate[i], before);
        else
            r->conditional_rate[i] = before > 0 ? fmin(rate[i] / before, 1) : 0;
    return rc;
}

static int put_histogram(dsc_acceptance_rates *r, const double *drafts, size_t bins, dsc_error *err)
{
    dsc_conditional_count *count = NULL;
    const int length = (int)bins - 1;
    if (bins < 2)
        return dsc_fail(err, DSC_EUSAGE,
                        "%zu count given; a histogram has those of the drafts that accepted 0, 1, "
                        "... tokens, at least two",
                        bins);
    int rc = put_rates(r, bins - 1, err);
    rc = rc ?: dsc_new(&count, bins - 1, err);
    for (int m = 0; m <= length && !rc; m++)
        rc = drafts[m] >= 0 && drafts[m] <= 0x1p53 && drafts[m] == floor(drafts[m])
                 ? dsc_conditional_add(count, length, m, length, (int64_t)drafts[m], err)
                 : dsc_fail(err, DSC_EUSAGE, "%g is not a number of drafts", drafts[m]);
    if (!rc && !count[0].at_risk)
        rc = dsc_fail(err, DSC_EUSAGE, "the histogram has no drafts");
    for (int j = 0; j < length && !rc; j++)
        r->conditional_rate[j] = count[j].at_risk ? dsc_conditional_rate(&count[j]) : 0;
    free(count);
    return rc;
}

// Expected accepted tokens of a draft as long as the list.
static double accepted(const double *rate, int positions, bool conditional)
{
    double sum = 0, reach = 1;
    for (int j = 0; j < positions; j++)
        sum += reach = conditional ? reach * rate[j] : rate[j];
    return sum;
}

// What no draft reaches cannot matter.
static void close_list(dsc_acceptance_rates *r)
{
    for (int j = 0; j < r->positions; j++)
        if (r->conditional_rate[j] == 0) {
            for (int i = j; i < r->positions; i++)
                r->conditional_rate[i] = 0;
            r->later = 0;
        }
}

// Tells what the list means, and what it may have meant: conditional rates seldom fall throughout.
static void note_list(dsc_acceptance_rates *r, form f, const char *source, const double *given)
{
    const int n = r->positions;
    bool falls = f == CONDITIONAL && n > 1 && given[n - 1] < given[0];
    for (int j = 1; j < n && falls; j++)
        falls = given[j] <= given[j - 1];
    const int end =
        snprintf(r->note, sizeof r->note,
                 "%.100s: mean acceptance length %.4g at %d draft token%s%s, bonus included",
                 source, 1 + accepted(r->conditional_rate, n, true), n, n == 1 ? "" : "s",
                 r->later == 0 ? " or more" : "");
    if (falls)
        snprintf(r->note + end, sizeof r->note - (size_t)end,
                 "; the list never rises: if it is vLLM's per-position acceptance rate, rates: is "
                 "the form, and the length %.4g",
                 1 + accepted(given, n, false));
}

static int put_list(dsc_acceptance_rates *r, form f, const char *source, const double *given,
                    size_t count, dsc_error *err)
{
    const int rc = f == RATES       ? put_unconditional(r, given, count, err)
                   : f == HISTOGRAM ? put_histogram(r, given, count, err)
                                    : put_conditional(r, given, count, err);
    if (rc)
        return rc;
    close_list(r);
    note_list(r, f, source, given);
    return DSC_OK;
}

// The contents of a file are input.
static int of_file(dsc_error *err, int status, const char *path)
{
    status = status == DSC_EUSAGE ? DSC_EINPUT : status;
    if (err)
        err->status = status;
    return dsc_error_prefix(err, status, "%.300s", path);
}

// --- a table -------------------------------------------------------------------------------------

// The numbers of a list; a column whose lists have one element each is one of numbers. Returns how
// many there are; 0: the table lacks the column or the row its value.
static size_t list_at(const dsc_table *t, size_t row, const char *name, const dsc_cell **out)
{
    const int c = dsc_table_find(t, name);
    *out = c < 0 ? NULL : dsc_table_at(t, row, (size_t)c);
    if (c < 0 || t->column[c].type == DSC_CELL_TEXT)
        return 0;
    if (t->column[c].type == DSC_CELL_LIST)
        return (size_t)(*out)->i;
    return !isnan(dsc_table_real(t, row, (size_t)c));
}

static double number_at(const dsc_table *t, size_t row, const char *name)
{
    const int c = dsc_table_find(t, name);
    return c < 0 ? (double)NAN : dsc_table_real(t, row, (size_t)c);
}

static int put_length(dsc_acceptance_rates *r, double tokens, int length, dsc_error *err)
{
    int rc = put_rates(r, 1, err);
    if (rc)
        return rc;
    r->later = r->conditional_rate[0] = dsc_iid_rate(tokens, length);
    snprintf(r->note, sizeof r->note,
             "%.4g of %d draft tokens accepted, mean acceptance length %.4g: the same rate at "
             "every position is assumed, iid:%.4g",
             tokens, length, 1 + tokens, r->later);
    return DSC_OK;
}

static int read_row(dsc_acceptance_rates *r, const dsc_table *t, size_t row, dsc_error *err)
{
    static const struct {
        const char *column;
        form form;
    } lists[] = {{DSC_COL_CONDITIONAL_ACCEPTANCE_RATE, TABLE},
                 {DSC_COL_ACCEPTANCE_RATE_POS, RATES},
                 {DSC_COL_ACCEPT_HISTOGRAM, HISTOGRAM}};
    const int id = dsc_table_find(t, DSC_COL_ID);
    char source[100] = "the table";
    double *given = NULL;
    if (t->rows > 1 && id >= 0 && t->column[id].type == DSC_CELL_TEXT)
        snprintf(source, sizeof source, "row '%.60s' of the table",
                 dsc_table_at(t, row, (size_t)id)->text);
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        const dsc_cell *cell;
        const size_t n = list_at(t, row, lists[l].column, &cell);
        if (!n)
            continue;
        int rc = dsc_new(&given, n, err);
        for (size_t i = 0; i < n && !rc; i++)
            given[i] = cell->type == DSC_CELL_LIST ? dsc_cell_element(cell, (int64_t)i)
                                                   : number_at(t, row, lists[l].column);
        rc = rc ?: put_list(r, lists[l].form, source, given, n, err);
        free(given);
        return rc;
    }
    const double tokens = number_at(t, row, DSC_COL_MEAN_ACCEPTANCE_LENGTH) - 1,
                 length = number_at(t, row, DSC_COL_NUM_DRAFT_TOKENS) /
                          number_at(t, row, DSC_COL_NUM_DRAFTS);
    if (tokens >= 0 && length >= 1 && length == floor(length) && tokens <= length &&
        length <= DSC_ACCEPTANCE_POSITIONS)
        return put_length(r, tokens, (int)length, err);
    return dsc_fail(err, DSC_EINPUT,
                    "row %zu has neither acceptance rates by position nor a mean acceptance length "
                    "of drafts that are all of one length",
                    row + 1);
}

// Reads into an empty *r what then becomes *out.
static int finish(dsc_acceptance_rates *out, dsc_acceptance_rates *r, int rc)
{
    if (rc)
        dsc_acceptance_rates_fini(r);
    else
        *out = *r;
    return rc;
}

int dsc_acceptance_rates_of_row(dsc_acceptance_rates *out, const dsc_table *t, size_t row,
                                const char *path, dsc_error *err)
{
    dsc_acceptance_rates r = {.later = NAN};
    int rc = read_row(&r, t, row, err);
    return finish(out, &r, rc ? of_file(err, rc, path) : rc);
}

int dsc_acceptance_row(size_t *row, const dsc_table *t, const char *path, dsc_error *err)
{
    const int id = dsc_table_find(t, DSC_COL_ID);
    *row = 0;
    if (dsc_table_find(t, DSC_COL_CONDITIONAL_ACCEPTANCE_RATE) < 0 &&
        dsc_table_find(t, DSC_COL_ACCEPTANCE_RATE_POS) < 0 &&
        dsc_table_find(t, DSC_COL_ACCEPT_HISTOGRAM) < 0 &&
        dsc_table_find(t, DSC_COL_MEAN_ACCEPTANCE_LENGTH) < 0)
        return dsc_fail(
            err, DSC_EINPUT,
            "%.300s is no table with a column such as " DSC_COL_ACCEPTANCE_RATE_POS
            ", which draftscope trace import makes of a server's counters; what a log "
            "or a benchmark prints is given as rates:R1,R2,..., al:LENGTH@K or rate:R@K",
            path);
    if (t->rows == 1)
        return DSC_OK;
    for (size_t i = 0; i < t->rows && id >= 0 && t->column[id].type == DSC_CELL_TEXT; i++)
        if (!strcmp(dsc_table_at(t, i, (size_t)id)->text, "all")) {
            *row = i;
            return DSC_OK;
        }
    return dsc_fail(err, DSC_EINPUT,
                    "%.300s has %zu rows and none of all together (id all); name one: "
                    "table:%.300s,COLUMN=VALUE",
                    path, t->rows, path);
}

// The text of a cell as the table has it.
static void cell_text(const dsc_table *t, size_t row, size_t c, char *out, size_t size)
{
    const dsc_cell *cell = dsc_table_at(t, row, c);
    char number[DSC_NUMBER_TEXT] = "";
    const bool text = t->column[c].type == DSC_CELL_TEXT;
    if (!text && t->column[c].type != DSC_CELL_LIST)
        dsc_number_text(dsc_table_real(t, row, c), number);
    snprintf(out, size, "%s", text ? cell->text : number);
}

static int find_row(size_t *row, const dsc_table *t, const char *path, const char *where,
                    dsc_error *err)
{
    char name[100], text[500];
    const char *value = where ? strchr(where, '=') : NULL;
    size_t found = 0;
    if (!where)
        return dsc_acceptance_row(row, t, path, err);
    if (!value)
        return dsc_fail(err, DSC_EUSAGE, "%.200s: %s is expected", where, forms[TABLE].usage);
    snprintf(name, sizeof name, "%.*s", (int)(value - where), where);
    const int c = dsc_table_find(t, name);
    if (c < 0)
        return dsc_fail(err, DSC_EINPUT, "%.300s has no column '%s'", path, name);
    for (size_t i = 0; i < t->rows; i++) {
        cell_text(t, i, (size_t)c, text, sizeof text);
        if (!strcmp(text, value + 1)) {
            *row = i;
            found++;
        }
    }
    return found == 1 ? DSC_OK
                      : dsc_fail(err, DSC_EINPUT, "%.300s: %zu rows have %.200s; one is needed",
                                 path, found, where);
}

static int read_table(dsc_acceptance_rates *r, const char *path, const char *where, dsc_error *err)
{
    dsc_table t = {0};
    size_t row;
    int rc = dsc_table_read(&t, path, err);
    rc = rc ?: find_row(&row, &t, path, where, err);
    rc = rc ?: dsc_acceptance_rates_of_row(r, &t, row, path, err);
    dsc_table_fini(&t);
    return rc;
}

// --- the text ------------------------------------------------------------------------------------

static form form_of(const char *text)
{
    const size_t n = strcspn(text, ":");
    form f = 0;
    while (f < FORMS && (!text[n] || strlen(forms[f].name) != n || strncmp(forms[f].name, text, n)))
        f++;
    return f;
}

bool dsc_acceptance_is(const char *text)
{
    struct stat st;
    char path[1000];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(text, ","), text);
    return form_of(text) < FORMS || looks_like_numbers(text) ||
           (!stat(path, &st) && S_ISREG(st.st_mode));
}

// "3.1@5": a number for drafts of 5 tokens.
static int read_at(const char *value, form f, numbers *n, int *length, dsc_error *err)
{
    char *end = NULL;
    const char *at = strchr(value, '@');
    const long k = at ? strtol(at + 1, &end, 10) : 0;
    if (!at || end == at + 1 || *skip(end) || k < 1 || k > DSC_ACCEPTANCE_POSITIONS)
        return dsc_fail(err, DSC_EUSAGE,
                        "the draft length that it was measured with, 1 to %d tokens, is needed: "
                        "%s:%.*s@K%s",
                        DSC_ACCEPTANCE_POSITIONS, forms[f].name, (int)strcspn(value, "@"), value,
                        f == RATE ? "; rates by position are rates: or conditional:" : "");
    char *text;
    int rc = dsc_strndup(&text, value, (size_t)(at - value), err);
    rc = rc ?: read_numbers(n, text, err);
    free(text);
    *length = (int)k;
    return rc || n->count == 1
               ? rc
               : dsc_fail(err, DSC_EUSAGE, "%zu numbers before the @, not one", n->count);
}

static int read_mean(dsc_acceptance_rates *r, form f, const char *value, dsc_error *err)
{
    numbers n = {0};
    int length = 0, rc = read_at(value, f, &n, &length, err);
    if (!rc && f == RATE)
        rc = read_fractions(&n, err);
    else if (!rc && !(n.x[0] >= 1 && n.x[0] <= length + 1 && !n.percent[0]))
        rc = dsc_fail(err, DSC_EUSAGE,
                      "the mean acceptance length of drafts of %d token%s is from 1 to %d: it "
                      "counts the bonus token; accepted tokens per draft are one less",
                      length, length == 1 ? "" : "s", length + 1);
    rc = rc ?: put_length(r, f == RATE ? n.x[0] * length : n.x[0] - 1, length, err);
    numbers_fini(&n);
    return rc;
}

static int read_list(dsc_acceptance_rates *r, form f, const char *value, dsc_error *err)
{
    enum { MOST_BYTES = 1 << 24 };
    numbers n = {0};
    char *file = NULL;
    int rc = DSC_OK;
    if (!looks_like_numbers(value))
        rc = access(value, F_OK) ? dsc_fail(err, DSC_EINPUT, "neither numbers nor a file")
                                 : dsc_read_text(&file, value, MOST_BYTES, err);
    rc = rc ?: read_numbers(&n, file ? file : value, err);
    if (!rc && f != HISTOGRAM)
        rc = read_fractions(&n, err);
    if (!rc && f == IID && n.count > 1)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "iid: has one rate; rates by position are rates:, of all drafts, as vLLM "
                      "prints them, or conditional:, of the drafts that came so far");
    const char *source = f == RATES       ? "shares of all drafts by position (rates)"
                         : f == HISTOGRAM ? "the histogram"
                                          : "rates of drafts that came so far (conditional)";
    rc = rc ?: put_list(r, f == IID ? CONDITIONAL : f, source, n.x, n.count, err);
    if (rc && file)
        rc = of_file(err, rc, value);
    free(file);
    numbers_fini(&n);
    return rc;
}

// A text in its parts.
typedef struct spec {
    form form;
    char *value;
    const char *where; // the row of a table, COLUMN=VALUE, or NULL
    double later, request_sd;
} spec;

static int read_item(spec *x, const char *item, dsc_error *err)
{
    const dsc_spec_form *f = &forms[x->form];
    dsc_option_value value[ITEMS];
    dsc_option_set set = {.table = f->item, .count = f->items, .value = value};
    char option[200], *argv[] = {option};
    size_t words;
    if (!f->items)
        return dsc_fail(err, DSC_EUSAGE, "%s takes no items", f->usage);
    snprintf(option, sizeof option, "--%.190s", item);
    const int rc = dsc_options_parse(&set, 1, 1, argv, &words, err);
    for (size_t o = 0; o < f->items && !rc; o++)
        if (value[o].given)
            *(strcmp(f->item[o].name, "later") ? &x->request_sd : &x->later) = value[o].real;
    return rc;
}

// Cuts the items NAME=VALUE off the value. The row of a table is the last item and goes on to the
// end of the text.
static int read_items(spec *x, dsc_error *err)
{
    char *item = strchr(x->value, '='), *next;
    while (item && item > x->value && *item != ',')
        item--;
    int rc = DSC_OK;
    for (item = item && *item == ',' ? item : NULL; item && !rc; item = next) {
        *item++ = '\0';
        item += strspn(item, blank);
        next = strchr(item, ',');
        if (x->form == TABLE && strncmp(item, "later=", 6) != 0) {
            x->where = item;
            break;
        }
        if (next)
            *next = '\0';
        rc = read_item(x, item, err);
        if (next)
            *next = ',';
    }
    return rc;
}

static int read_spec(dsc_acceptance_rates *r, spec *x, dsc_error *err)
{
    int rc = read_items(x, err);
    if (!rc && !*skip(x->value))
        rc = dsc_fail(err, DSC_EUSAGE, "%s is expected", forms[x->form].usage);
    if (!rc)
        rc = x->form == TABLE                       ? read_table(r, x->value, x->where, err)
             : x->form == LENGTH || x->form == RATE ? read_mean(r, x->form, x->value, err)
                                                    : read_list(r, x->form, x->value, err);
    if (rc)
        return rc;
    r->request_sd = x->request_sd;
    if (x->form == IID) {
        r->later = r->conditional_rate[0];
        r->one_draft = false;
        r->note[0] = '\0';
    } else if (isnan(r->later)) {
        r->later = x->later;
    }
    return DSC_OK;
}

// A list without the name of its form may be either of two.
static int no_form(const char *text, dsc_error *err)
{
    const char *names[FORMS];
    char name[64];
    for (form f = 0; f < FORMS; f++)
        names[f] = forms[f].name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    if (looks_like_numbers(text))
        return dsc_fail(
            err, DSC_EUSAGE,
            strpbrk(text, ",; ")
                ? "%.100s: of which drafts? rates:... are shares of all drafts, as vLLM prints "
                  "them "
                  "by position; conditional:... are those of the drafts that came so far"
                : "%.100s: of what? iid:A is a rate for every position, rate:R@K accepted / "
                  "drafted tokens, al:L@K a mean acceptance length",
            text);
    return dsc_unknown_name("acceptance", name, names, FORMS,
                            "iid, rates, conditional, al, rate, histogram, or the path of a table",
                            err);
}

int dsc_acceptance_rates_read(dsc_acceptance_rates *out, const char *text, dsc_error *err)
{
    dsc_acceptance_rates r = {.later = NAN};
    if (!out || !text)
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_acceptance_rates_read: out and text must not be NULL");
    const char *whole = text;
    spec x = {.form = form_of(text), .later = NAN};
    if (x.form < FORMS)
        text += strlen(forms[x.form].name) + 1;
    else if (dsc_acceptance_is(text) && !looks_like_numbers(text))
        x.form = TABLE;
    else
        return no_form(text, err);
    int rc = dsc_strndup(&x.value, text, strlen(text), err);
    rc = rc ?: read_spec(&r, &x, err);
    free(x.value);
    if (rc && x.form != TABLE)
        dsc_error_prefix(err, rc, "%.200s", whole);
    return finish(out, &r, rc);
}

void dsc_acceptance_rates_fill(const dsc_acceptance_rates *r, int64_t length, double *rate)
{
    for (int64_t d = 0; r && rate && d < length; d++)
        rate[d] = d < r->positions ? r->conditional_rate[d] : r->later;
}

int dsc_acceptance_too_long(int64_t positions, dsc_error *err)
{
    return dsc_fail(err, DSC_EUSAGE,
                    "the acceptance rates are those of %lld position%s: take drafts of at most "
                    "%lld token%s, or give the later positions a rate, later=H",
                    (long long)positions, positions == 1 ? "" : "s", (long long)positions,
                    positions == 1 ? "" : "s");
}
