// SPDX-License-Identifier: Apache-2.0
// The lines of a metrics page: a name, labels in braces with the escapes \\, \" and \n, a number
// and an optional time, which is ignored.
#include "traces/files/metrics_page.h"

#include "base/memory.h"
#include "base/number.h"
#include "traces/files/input.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads a label and advances *at past it.
static const char *take_label(char **at)
{
    char *start = *at, *p = start;
    while (isalnum((unsigned char)*p) || *p == '_')
        p++;
    if (p == start || p[0] != '=' || p[1] != '"')
        return NULL;
    for (p += 2; *p && *p != '"'; p++)
        if (*p == '\\' && p[1])
            p++;
    if (*p != '"')
        return NULL;
    *at = p + 1;
    return start;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Reads the labels between { and }. *at is after '{' and advances past '}'.
static int read_labels(char **at, dsc_metric_sample *m, dsc_error *err)
{
    while (**at != '}') {
        while (**at == ' ')
            ++*at;
        const char *start = take_label(at);
        if (!start || m->labels == DSC_METRIC_LABELS)
            return dsc_fail(err, DSC_EINPUT, "labels must be NAME=\"VALUE\", at most %d",
                            DSC_METRIC_LABELS);
        if (**at != ',' && **at != '}')
            return dsc_fail(err, DSC_EINPUT, "',' or '}' expected after a label");
        m->label[m->labels++] = start;
        bool more = **at == ',';
        **at = '\0'; // ends this label
        if (!more)
            break;
        ++*at;
    }
    ++*at;
    qsort(m->label, m->labels, sizeof *m->label, by_text);
    return DSC_OK;
}

static int read_value(const char *text, dsc_metric_sample *m, dsc_error *err)
{
    char *end;
    m->text = text;
    m->value = dsc_strtod(text, &end);
    const bool some = end != text;
    while (*end == ' ' || *end == '\t' || isdigit((unsigned char)*end) || *end == '-')
        end++; // the time
    if (some && !*end)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "a number must follow the metric, not '%.60s'", text);
}

// Reads one line of `length` bytes, which it changes.
static int read_line(char *text, size_t length, dsc_metric_wanted *wanted,
                     dsc_metric_visitor *visit, void *user, dsc_error *err)
{
    dsc_metric_sample m = {.name = text, .length = strcspn(text, "{ \t")};
    if (*text == '#' || !wanted(m.name, m.length))
        return DSC_OK;
    if (length >= DSC_METRIC_BYTES)
        return dsc_fail(err, DSC_EINPUT, "the line has %zu bytes; the limit is %d", length,
                        DSC_METRIC_BYTES - 1);
    char *at = text + m.length;
    int rc = DSC_OK;
    if (*at == '{') {
        at++;
        rc = read_labels(&at, &m, err);
    }
    if (!rc)
        rc = read_value(at + strspn(at, " \t"), &m, err);
    return rc ? rc : visit(user, &m, err);
}

int dsc_metrics_page_read(const char *path, dsc_metric_wanted *wanted, dsc_metric_visitor *visit,
                          void *user, dsc_error *err)
{
    dsc_input *in;
    int rc = dsc_input_open(&in, path, err);
    if (rc)
        return rc;
    dsc_buffer text = {0};
    for (;;) {
        dsc_line line;
        rc = dsc_input_line(in, &line, err);
        if (rc || !line.bytes)
            break;
        text.length = 0;
        rc = dsc_buffer_append(&text, line.bytes, line.length, err);
        if (!rc)
            rc = read_line(text.data, text.length, wanted, visit, user, err);
        if (rc) {
            dsc_error_prefix(err, rc, "%s:%lld", dsc_input_name(in), (long long)line.number);
            break;
        }
    }
    dsc_buffer_fini(&text);
    dsc_input_close(in);
    return rc;
}

void dsc_metric_stem(const char **name, size_t *length)
{
    for (size_t i = *length; i > 0; i--)
        if ((*name)[i - 1] == ':') {
            *name += i;
            *length -= i;
            return;
        }
}

void dsc_metric_without(const char *name, size_t *length, const char *end)
{
    const size_t tail = strlen(end);
    if (*length > tail && memcmp(name + *length - tail, end, tail) == 0)
        *length -= tail;
}

const char *dsc_metric_label(const dsc_metric_sample *m, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < m->labels; i++)
        if (strncmp(m->label[i], name, length) == 0 && m->label[i][length] == '=')
            return m->label[i] + length + 2;
    return NULL;
}

void dsc_metric_join(const dsc_metric_sample *m, const char *left_out, char out[DSC_METRIC_BYTES])
{
    const char *skip = dsc_metric_label(m, left_out);
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < m->labels; i++)
        if (!skip || m->label[i] + strlen(left_out) + 2 != skip)
            used += (size_t)snprintf(out + used, DSC_METRIC_BYTES - used, "%s%s", used ? "," : "",
                                     m->label[i]);
}
