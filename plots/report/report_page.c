// SPDX-License-Identifier: Apache-2.0
// Writes blocks, text and cells in the markup of a page type.
#include "plots/report/report_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

void dsc_page_fini(dsc_page *p)
{
    for (size_t i = 0; p->picture && i < p->figures; i++)
        dsc_buffer_fini(&p->picture[i]);
    free(p->picture);
    p->picture = NULL;
    dsc_buffer_fini(&p->unescaped);
}

void dsc_open(dsc_page *p, dsc_block block)
{
    dsc_put(&p->w, "%s", p->type->open[block]);
}

void dsc_close(dsc_page *p, dsc_block block)
{
    dsc_put(&p->w, "%s", p->type->close[block]);
}

void dsc_open_once(dsc_page *p, dsc_block block, bool *is_open)
{
    if (!*is_open)
        dsc_open(p, block);
    *is_open = true;
}

void dsc_begin_part(dsc_page *p, const dsc_page_part *part, const char *id, ...)
{
    va_list args;
    if (!part->before)
        return;
    dsc_put(&p->w, "%s", part->before);
    va_start(args, id);
    dsc_vput(&p->w, id, args);
    va_end(args);
    dsc_put(&p->w, "%s", part->after);
}

void dsc_end_part(dsc_page *p, const dsc_page_part *part)
{
    dsc_put(&p->w, "%s", part->end ? part->end : "");
}

dsc_writer *dsc_say_begin(dsc_page *p)
{
    p->unescaped.length = 0;
    p->plain = (dsc_writer){.to = &p->unescaped, .err = p->w.err, .rc = p->w.rc};
    return &p->plain;
}

void dsc_say_end(dsc_page *p)
{
    p->w.rc = p->w.rc ? p->w.rc : p->plain.rc;
    if (!p->w.rc && p->unescaped.length)
        p->type->text(&p->w, p->unescaped.data);
}

void dsc_say(dsc_page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dsc_vput(dsc_say_begin(p), format, args);
    va_end(args);
    dsc_say_end(p);
}

void dsc_say_block(dsc_page *p, dsc_block block, const char *format, ...)
{
    va_list args;
    dsc_open(p, block);
    va_start(args, format);
    dsc_vput(dsc_say_begin(p), format, args);
    va_end(args);
    dsc_say_end(p);
    dsc_close(p, block);
}

void dsc_say_pair(dsc_page *p, const char *key, dsc_block value_block, const char *value)
{
    dsc_say_block(p, DSC_KEY, "%s", key);
    dsc_say_block(p, value_block, "%s", value);
}

void dsc_put_reading(dsc_writer *w, const dsc_cell *c)
{
    bool plain = fabs(c->r) < 1e7 && (c->r == 0 || fabs(c->r) >= 1e-3);
    if (c->type == DSC_CELL_REAL && isfinite(c->r))
        dsc_put(w, plain ? "%.4f" : "%.4g", c->r);
    else if (c->type != DSC_CELL_LIST)
        dsc_put_cell(w, c);
    else
        for (int64_t i = 0; i < c->i; i++) {
            dsc_put(w, "%s", i ? " " : "");
            if (c->reals)
                dsc_put(w, "%.4f", c->reals[i]);
            else
                dsc_put(w, "%" PRId64, c->list[i]);
        }
}

void dsc_say_cell(dsc_page *p, const dsc_cell *c)
{
    dsc_put_reading(dsc_say_begin(p), c);
    dsc_say_end(p);
}

void dsc_put_picture_name(dsc_writer *w, const dsc_page *p, size_t number)
{
    dsc_put(w, "%sfigure-%zu.pdf", p->stem, number);
}
