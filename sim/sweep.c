// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep.h"

#include "base/file.h"
#include "sim/result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_values(dsc_grid *g, size_t o, const char *text, dsc_error *err)
{
    const dsc_option *option = &g->drafter->option[o];
    g->count[o] = 1;
    g->text[o] = text;
    if (option->kind == DSC_OPTION_TEXT)
        return DSC_OK;
    if (option->kind == DSC_OPTION_REAL)
        return dsc_option_reals(option, text, &g->real[o], &g->count[o], err);
    return dsc_option_list(option, text, &g->value[o], &g->count[o], err);
}

int dsc_grid_init(dsc_grid *g, const dsc_drafter_type *drafter, const dsc_option_value *text,
                  dsc_error *err)
{
    *g = (dsc_grid){.drafter = drafter, .total = 1};
    for (size_t o = 0; o < drafter->option_count; o++) {
        int rc = read_values(g, o, text[o].text, err);
        if (!rc && g->count[o] > DSC_MAX_GRID / g->total)
            rc =
                dsc_fail(err, DSC_EUSAGE, "the grid has more than %d configurations", DSC_MAX_GRID);
        if (rc) {
            dsc_grid_fini(g);
            return rc;
        }
        g->total *= g->count[o];
    }
    return DSC_OK;
}

void dsc_grid_fini(dsc_grid *g)
{
    for (size_t o = 0; o < DSC_MAX_PARAMETERS; o++) {
        free(g->value[o]);
        free(g->real[o]);
    }
    *g = (dsc_grid){0};
}

dsc_config dsc_grid_at(const dsc_grid *g, size_t index)
{
    dsc_config c = {.drafter = g->drafter};
    for (size_t o = g->drafter->option_count; o-- > 0;) {
        size_t i = index % g->count[o];
        c.parameter[o] = g->value[o] ? g->value[o][i] : 0;
        c.real[o] = g->real[o] ? g->real[o][i] : 0;
        c.text[o] = g->text[o];
        index /= g->count[o];
    }
    return c;
}

// A sweep under way.
typedef struct sweep {
    const dsc_trace *trace;
    const dsc_grid *grid;
    const dsc_sweep_options *options;
    const char *path;
    char *part;   // PATH.part
    FILE *stream; // of it
    size_t done;  // configurations on disk
    size_t block; // configurations in the pass under way
    int parts;    // DSC_RESULT_EXPECTED or 0
    int64_t output_tokens;
} sweep;

static int open_part(sweep *s, dsc_error *err)
{
    struct stat st;
    bool exists = lstat(s->path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return dsc_fail(err, DSC_EUSAGE, "%s is not a regular file", s->path);
    if (exists && !s->options->force)
        return dsc_fail(err, DSC_EUSAGE, "%s exists already (--force to replace it)", s->path);
    int fd = open(s->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", s->part);
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        return dsc_fail(err, DSC_EUSAGE, "%s is being written by another sweep", s->part);
    }
    if (s->options->force && ftruncate(fd, 0)) {
        int why = errno;
        close(fd);
        return dsc_fail_errno(err, DSC_EIO, why, "cannot write %s", s->part);
    }
    s->stream = fdopen(fd, "r+b");
    return s->stream ? DSC_OK : dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", s->part);
}

// Everything but the command line must be the same for the rows to belong to this sweep.
static bool same_sweep(const dsc_table *a, const dsc_table *b)
{
    bool same = a->columns == b->columns && a->comments == b->comments;
    for (size_t c = 0; same && c < a->columns; c++)
        same = strcmp(a->column[c].name, b->column[c].name) == 0;
    for (size_t i = 0; same && i < a->comments; i++)
        same = strcmp(a->key[i], b->key[i]) == 0 &&
               (strcmp(a->key[i], "command") == 0 || strcmp(a->value[i], b->value[i]) == 0);
    return same;
}

// Cuts the part file behind its last complete line and returns that length.
static int cut_last_line(sweep *s, long *length, dsc_error *err)
{
    int c;
    long at = 0;
    *length = 0;
    rewind(s->stream);
    while ((c = getc(s->stream)) != EOF) {
        at++;
        if (c == '\n')
            *length = at;
    }
    fseek(s->stream, *length, SEEK_SET);
    if (ferror(s->stream) || ftruncate(fileno(s->stream), *length))
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot take up %s", s->part);
    return DSC_OK;
}

// How many configurations the part file holds; fails when it is another sweep's.
static int take_up(sweep *s, const dsc_table *head, dsc_error *err)
{
    long length;
    dsc_table old;
    int rc = cut_last_line(s, &length, err);
    if (rc || length == 0)
        return rc;
    rc = dsc_table_read(&old, s->part, err);
    bool same = !rc && old.rows <= s->grid->total && (!old.rows || same_sweep(&old, head));
    if (same)
        s->done = old.rows;
    if (!rc)
        dsc_table_fini(&old);
    if (!same)
        return dsc_fail(err, DSC_EUSAGE,
                        "%s is left from a different sweep: remove it, or --force to "
                        "start anew",
                        s->part);
    if (s->done == 0) { // a head and nothing else: written again below
        rewind(s->stream);
        if (ftruncate(fileno(s->stream), 0))
            return dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", s->part);
    } else if (s->options->resumed) {
        s->options->resumed(s->options->run.user, s->done, s->grid->total);
    }
    return DSC_OK;
}

static int flush_part(sweep *s, dsc_error *err)
{
    if (fflush(s->stream) || ferror(s->stream) || fsync(fileno(s->stream)))
        return dsc_fail_errno(err, DSC_EIO, errno, "cannot write %s", s->part);
    return DSC_OK;
}

static int block_progress(void *user, int64_t done, int64_t total)
{
    const sweep *s = user;
    (void)total;
    const dsc_run_options *o = &s->options->run;
    return o->progress ? o->progress(o->user,
                                     (int64_t)s->done * s->output_tokens + (int64_t)s->block * done,
                                     (int64_t)s->grid->total * s->output_tokens)
                       : 0;
}

// The configurations from s->done on, ready to run: all `count` of them are to be finished, also on
// failure.
static int make_configs(const sweep *s, dsc_config *config, size_t count, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < count; c++) {
        config[c] = dsc_grid_at(s->grid, s->done + c);
        if (!rc)
            rc = dsc_config_prepare(&config[c], err);
    }
    return rc;
}

static int run_block(sweep *s, dsc_table *t, const dsc_config *config, size_t count, dsc_error *err)
{
    dsc_run_options run = s->options->run;
    dsc_results results;
    run.progress = block_progress;
    run.user = s;
    s->block = count;
    int rc = dsc_run(s->trace, config, count, &run, &results, err);
    if (rc)
        return rc;
    for (size_t c = 0; c < count && !rc; c++) {
        size_t row = t->rows;
        dsc_result row_of = {.config = &config[c],
                             .rule =
                                 s->options->run.rule ? s->options->run.rule : &dsc_verifier_greedy,
                             .counts = &results.counts[c],
                             .cost = &s->options->cost};
        rc = dsc_result_row(t, &row_of, s->parts, err);
        if (!rc && s->options->jsonl)
            dsc_table_write_jsonl_row(t, row, s->stream);
        else if (!rc)
            dsc_table_write_tsv_row(t, row, s->stream);
    }
    dsc_results_fini(&results);
    return rc ? rc : flush_part(s, err);
}

// One pass over a small trace does everything at once; over a large one, blocks bound what an
// interruption costs to some seconds of work.
static size_t choose_block(const sweep *s)
{
    enum { MOST = 1024, TOKENS = 1 << 29 };
    if (s->options->block)
        return s->options->block;
    int64_t n = s->output_tokens > 0 ? TOKENS / s->output_tokens : MOST;
    return n < 32 ? 32 : n > MOST ? MOST : (size_t)n;
}

static int run_all(sweep *s, dsc_error *err)
{
    size_t block = choose_block(s);
    void *mem;
    int rc =
        dsc_alloc(&mem, block < s->grid->total ? block : s->grid->total, sizeof(dsc_config), err);
    dsc_config *config = mem;
    while (!rc && s->done < s->grid->total) {
        size_t left = s->grid->total - s->done, n = left < block ? left : block;
        dsc_table t = {0};
        rc = make_configs(s, config, n, err);
        if (!rc)
            rc = dsc_result_columns(&t, s->grid->drafter, s->parts, err);
        if (!rc)
            rc = run_block(s, &t, config, n, err);
        for (size_t c = 0; c < n; c++)
            dsc_config_fini(&config[c]);
        dsc_table_fini(&t);
        if (!rc)
            s->done += n;
    }
    free(config);
    return rc;
}

static int finish(sweep *s, dsc_error *err)
{
    int rc = flush_part(s, err);
    if (!rc && rename(s->part, s->path))
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot rename %s", s->part);
    return rc ? rc : dsc_sync_folder(s->path, err);
}

int dsc_sweep(const dsc_trace *trace, const dsc_grid *grid, const dsc_table *comments,
              const char *path, const dsc_sweep_options *options, dsc_error *err)
{
    sweep s = {.trace = trace,
               .grid = grid,
               .options = options,
               .path = path,
               .output_tokens = dsc_trace_get_info(trace)->output_tokens};
    dsc_table head = {0};
    dsc_buffer part = {0};
    dsc_engine_choice engine;
    dsc_config last = dsc_grid_at(grid, grid->total - 1); // likely the one that asks most
    int rc = dsc_config_prepare(&last, err);
    if (!rc)
        rc = dsc_run_choose(trace, &last, 1, &options->run, &engine, err);
    dsc_config_fini(&last);
    if (rc)
        return rc;
    s.parts = engine.expected ? DSC_RESULT_EXPECTED : 0;
    rc = dsc_buffer_printf(&part, err, "%s.part", path);
    s.part = part.data;
    for (size_t i = 0; i < comments->comments && !rc; i++)
        rc = dsc_table_comment(&head, comments->key[i], comments->value[i], err);
    if (!rc && engine.expected)
        rc = dsc_table_comment(&head, "engine", engine.why, err);
    if (!rc)
        rc = dsc_result_columns(&head, grid->drafter, s.parts, err);
    if (!rc)
        rc = open_part(&s, err);
    if (!rc)
        rc = take_up(&s, &head, err);
    if (!rc && ftell(s.stream) == 0) {
        if (options->jsonl)
            dsc_table_write_jsonl_head(&head, s.stream);
        else
            dsc_table_write_tsv_head(&head, s.stream);
        rc = flush_part(&s, err);
    }
    if (!rc)
        rc = run_all(&s, err);
    if (!rc)
        rc = finish(&s, err);
    if (s.stream)
        fclose(s.stream);
    dsc_table_fini(&head);
    dsc_buffer_fini(&part);
    return rc;
}
