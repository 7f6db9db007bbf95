// SPDX-License-Identifier: Apache-2.0
// Calls every function of the library with arguments at their limits (generate.awk, feeds.tsv),
// each in a process of its own, and prints what did not end as the headers state: a signal, a
// sanitizer's report, no end, or a failure without a message.
//   limits TRACE.dst FOLDER            all calls; function, parameter, value, outcome, number
//   limits TRACE.dst FOLDER NUMBER     one call, in this process
#include <draftscope.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VOCAB = 4, ROOM = 64, SECONDS = 10, SILENT = 3, NO_FIXTURE = 99 };

// What arguments point to. The arrays are allocated, so that a sanitizer sees their ends.
static struct fixture {
    dsc_error err;
    float *floats, *nan_floats, *negative_floats;
    double *draft, *target, *sum_one, *nan_row, *negative_row, *infinite_row, *room, *reals;
    int32_t *tokens, *top;
    int64_t *storage, *integers, integer;
    size_t size, capacity;
    void *memory, *grown;
    void *grown_at;
    char *string, text[ROOM], (*hexes)[DSC_SHA256_HEX], new_path[600], file_path[600];
    const char *constant, *trace_path, *paths[2];
    char *argv[3];
    FILE *null_file;
    dsc_config config;
    dsc_curve curve;
    dsc_kseq kseq;
    dsc_specinfer specinfer;
    dsc_cost cost;
    dsc_price price;
    dsc_pass pass;
    dsc_block_cost block_cost;
    dsc_block_best best;
    dsc_acceptance acceptance, bad_acceptance;
    dsc_conditional_count *conditional;
    int *drafts;
    dsc_rule_acceptance *rules;
    dsc_acceptance_work *work, *new_work;
    dsc_tree tree, new_tree;
    dsc_tree_acceptance tree_rates, bad_tree_rates;
    dsc_tree_cost tree_cost;
    dsc_tree_plan *plan, *new_plan;
    dsc_trace *trace, *new_trace;
    dsc_shard *shard, *new_shard;
    dsc_trace_writer *writer, *new_writer;
    dsc_trace_info info;
    dsc_request request, new_request;
    dsc_request_input input, negative_input;
    dsc_row row, new_row;
    dsc_dist dist;
    dsc_draft draft_tree;
    dsc_verdict verdict;
    dsc_counts counts;
    dsc_counts_room counts_room, negative_room;
    dsc_metrics metrics;
    dsc_metric_counts metric_counts;
    dsc_acceptance_rates rates;
    dsc_cell *cells;
    dsc_arena arena;
    dsc_buffer buffer;
    dsc_option option;
    dsc_option_use use;
    dsc_option_uses uses;
    dsc_option_value value;
    dsc_option_set set;
    dsc_sha256 sha256;
    dsc_run_options options, bad_options;
    dsc_results results;
    dsc_engine_choice choice;
    dsc_history history;
    dsc_drafter_input drafter_input;
    struct {
        dsc_config config;
        dsc_curve curve;
        dsc_kseq kseq;
        dsc_specinfer specinfer;
        dsc_cost cost;
        dsc_trace_info info;
        dsc_request request;
        dsc_request_input input;
        dsc_row row;
        dsc_dist dist;
        dsc_draft draft_tree;
        dsc_verdict verdict;
        dsc_counts counts;
        dsc_counts_room counts_room;
        dsc_metrics metrics;
        dsc_metric_counts metric_counts;
        dsc_acceptance_rates rates;
        dsc_arena arena;
        dsc_buffer buffer;
        dsc_option option;
        dsc_option_set set;
        dsc_run_options options;
        dsc_results results;
        dsc_drafter_type drafter;
        dsc_drafter_input drafter_input;
        dsc_tree tree;
        dsc_tree_acceptance tree_rates;
        dsc_tree_cost tree_cost;
    } zero;
} x;

static volatile double used;

static void use(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        used += ((const unsigned char *)bytes)[i];
}

// A failure is one of status.h and has a message.
static int checked(int rc)
{
    if (rc < 0 && (rc < DSC_EDEVICE || (x.err.status == rc && !*x.err.message)))
        _exit(SILENT);
    return rc;
}

static int visit_nothing(void *context, const dsc_request *q, dsc_error *err)
{
    (void)context, (void)err;
    use(q, sizeof *q);
    return 0;
}

#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic ignored "-Wnonnull"
#endif
#include "calls.h"

static void *array(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        exit(NO_FIXTURE);
    return memory;
}

static double *row_of(double a, double b, double c, double d)
{
    double *row = array(VOCAB, sizeof *row);
    row[0] = a, row[1] = b, row[2] = c, row[3] = d;
    return row;
}

static void must(int rc)
{
    if (rc) {
        fprintf(stderr, "limits: %s\n", x.err.message);
        exit(NO_FIXTURE);
    }
}

static void make_distributions(void)
{
    x.draft = row_of(.4, .3, .2, .1);
    x.target = row_of(.1, .2, .3, .4);
    x.sum_one = row_of(.25, .25, .25, .25);
    x.nan_row = row_of(.5, NAN, .5, 0);
    x.negative_row = row_of(.5, -.5, .5, .5);
    x.infinite_row = row_of(0, -INFINITY, INFINITY, 1);
    x.room = array(VOCAB, sizeof *x.room);
    x.tokens = array(2, sizeof *x.tokens);
    x.tokens[1] = 1;
    x.top = array(VOCAB, sizeof *x.top);
    must(dsc_curve_init(&x.curve, x.draft, x.target, VOCAB, &x.err));
    x.kseq = dsc_kseq_best(&x.curve, 2);
    must(dsc_specinfer_init(&x.specinfer, &x.curve, 2, &x.err));
    x.dist = (dsc_dist){.vocab_size = VOCAB, .dense = x.draft, .levels = 1};
    x.acceptance = (dsc_acceptance){.conditional_rate = x.draft, .conditional_rates = 2};
    x.bad_acceptance = (dsc_acceptance){.rate = NAN};
    x.conditional = array(2, sizeof *x.conditional);
    x.pass = (dsc_pass){2, 10, 1, false};
    static float logp[2] = {-1, -2};
    x.row = (dsc_row){.token = x.tokens, .logp = logp, .count = 2, .tail = -1};
}

static float *floats_of(const double *row)
{
    float *floats = array(VOCAB, sizeof *floats);
    for (int i = 0; i < VOCAB; i++)
        floats[i] = (float)row[i];
    return floats;
}

static void make_trees(void)
{
    x.floats = floats_of(x.target);
    x.nan_floats = floats_of(x.nan_row);
    x.negative_floats = floats_of(x.negative_row);
    x.drafts = array(2, sizeof *x.drafts);
    x.drafts[0] = 1, x.drafts[1] = INT_MAX;
    x.rules = array(2, sizeof *x.rules);
    must(dsc_acceptance_work_new(&x.work, &x.err));
    x.tree_rates = (dsc_tree_acceptance){.rate = x.draft, .depths = 1, .ranks = 2};
    x.bad_tree_rates = (dsc_tree_acceptance){.rate = x.nan_row, .depths = 1, .ranks = 2};
    x.tree_cost = (dsc_tree_cost){.draft = .1, .target = x.target};
    must(dsc_tree_named(&x.tree, "chain:2", &x.err));
    must(dsc_tree_plan_new(&x.plan, &x.tree_rates, 4, 2, &x.err));
}

// A request of two output tokens with their distributions, as a caller makes one by hand.
static void make_request(void)
{
    static int64_t offset[3] = {0, 1, 2};
    static float logp[2] = {-.1f, -.2f}, tail[2] = {-2.3f, -1.7f};
    dsc_shard_request(x.shard, 0, &x.request);
    x.request.output = (dsc_token_view){x.tokens, 2};
    for (int side = 0; side < DSC_SIDES; side++)
        x.request.rows[side] = (dsc_rows){
            .kind = DSC_ROWS_LISTED,
            .offset = offset,
            .token = x.tokens,
            .logp = logp,
            .tail = tail,
            .vocab_size = VOCAB,
        };
    x.input =
        (dsc_request_input){.id = {"new", 3}, .prompt = {x.tokens, 2}, .output = {x.tokens, 2}};
    x.negative_input = x.input;
    x.negative_input.output.count = -1;
}

static void make_trace(const char *trace, const char *folder)
{
    x.trace_path = trace;
    snprintf(x.new_path, sizeof x.new_path, "%s/new%ld.dst", folder, (long)getpid());
    snprintf(x.file_path, sizeof x.file_path, "%s/manifest.json", trace);
    x.paths[0] = x.paths[1] = x.file_path;
    must(dsc_trace_open(&x.trace, trace, &x.err));
    must(dsc_shard_open(&x.shard, x.trace, 0, &x.err));
    x.info = *dsc_trace_get_info(x.trace);
    make_request();
    char path[600];
    snprintf(path, sizeof path, "%s/open%ld.dst", folder, (long)getpid());
    must(dsc_trace_writer_open(&x.writer, path, &x.info, true, 0, &x.err));
}

static void make_options(void)
{
    x.option = (dsc_option){.name = "number", .letter = 'n', .kind = DSC_OPTION_INT, .max = 9};
    x.option.most = 9, x.option.metavar = "N", x.option.help = "a number";
    x.use = (dsc_option_use){.option = &x.option, .text = "1"};
    x.set = (dsc_option_set){.table = &x.option, .count = 1, .value = &x.value};
    static char program[] = "program", number[] = "--number=1";
    x.argv[0] = program, x.argv[1] = number;
}

static void make_run(void)
{
    dsc_config_init(&x.config, dsc_drafter_find("ngram", &x.err));
    must(dsc_config_prepare(&x.config, &x.err));
    must(dsc_cost_parse(&x.cost, "linear:0.02,0.001", &x.err));
    x.options.threads = 1;
    x.bad_options = (dsc_run_options){.threads = -1, .first_request = -5, .end_request = -1};
    must(dsc_run(x.trace, &x.config, 1, &x.options, &x.results, &x.err));
    x.counts = x.results.counts[0];
    x.metric_counts = dsc_counts_metrics(&x.counts);
    must(dsc_metrics_init(&x.metrics, &x.metric_counts, &x.arena, &x.err));
    must(dsc_acceptance_rates_read(&x.rates, "rates:.9,.8", &x.err));
    x.cells = array(DSC_METRICS, sizeof *x.cells);
    x.counts_room = (dsc_counts_room){2, 2, 2, 2};
    x.negative_room = (dsc_counts_room){-1, -1, -1, -1};
    x.storage = array((size_t)dsc_counts_elements(&x.counts_room), sizeof *x.storage);
    x.drafter_input = (dsc_drafter_input){
        .request = &x.request,
        .config = &x.config,
        .parameter = x.config.parameter,
        .arena = &x.arena,
        .end_token = -1,
        .history = &x.history,
    };
    must(dsc_draft_append_chain(&x.draft_tree, -1, x.tokens, 2, &x.err));
    must(dsc_verdict_accept(&x.verdict, 1, 0, &x.err));
    must(dsc_buffer_puts(&x.buffer, "text", &x.err));
    dsc_sha256_init(&x.sha256);
    strcpy(x.text, "text");
    x.hexes = array(2, sizeof *x.hexes);
    x.null_file = fopen("/dev/null", "w");
}

// The outcome of a process as a word; NULL: as it should be.
static const char *outcome(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM))
        snprintf(text, size, "no end in %d s", SECONDS);
    else if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) == SILENT)
        snprintf(text, size, "a failure without a message");
    else if (WEXITSTATUS(status))
        snprintf(text, size, "a sanitizer's report");
    else
        return NULL;
    return text;
}

static void run(int number)
{
    // Of processor time, which other processes do not use; a call that waits uses none.
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = SECONDS}, NULL);
    alarm(60 * SECONDS);
    x.err = (dsc_error){0};
    call(number);
    use(x.room, VOCAB * sizeof *x.room);
    _exit(0);
}

static const char *attempt(int number, char *text, size_t size)
{
    int status;
    pid_t child = fork();
    if (child < 0)
        exit(NO_FIXTURE);
    if (!child) {
        int fd = open("/dev/null", O_WRONLY);
        dup2(fd, STDERR_FILENO);
        run(number);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return outcome(status, text, size);
}

int main(int argc, char **argv)
{
    char text[64];
    if (argc < 3)
        return 2;
    x.grown_at = &x.grown;
    make_distributions();
    make_trees();
    make_trace(argv[1], argv[2]);
    make_options();
    make_run();
    if (argc > 3)
        run(atoi(argv[3]));
    int failed = 0;
    for (int i = 0; i < ATTEMPTS; i++) {
        const char *bad = attempt(i, text, sizeof text);
        if (!bad)
            continue;
        printf("%s\t%s\t%s\t%s\t%d\n", attempts[i].function, attempts[i].parameter,
               attempts[i].value, bad, i);
        fflush(stdout);
        failed++;
    }
    dsc_trace_writer_abort(x.writer);
    fprintf(stderr, "%d functions, %d calls, %d failed\n", FUNCTIONS, ATTEMPTS, failed);
    return 0;
}
