// SPDX-License-Identifier: Apache-2.0
// Prints every step of the serving engine and every completed request, for a workload that
// `serve.py make` wrote. serve.py prints the same of its own simulation.
//
// Usage: serve_events <WORKLOAD
#include "sim/serve/serve_policy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

typedef struct workload {
    dsc_cost cost;
    dsc_serve_price price;
    dsc_arrivals arrivals;
    dsc_serve_policy policy;
    dsc_serve_options options;
    dsc_serve_item item[MOST];
    double time[MOST];
    size_t items;
    dsc_serve_level tree[64];
    const dsc_serve_pass *script[MOST];
    bool has_tree, has_script;
    int32_t widest;
} workload;

static void must(int rc, const dsc_error *err)
{
    if (rc) {
        fprintf(stderr, "serve_events: %s\n", err->message);
        exit(dsc_exit_code(rc));
    }
}

static long number(void)
{
    long value;
    if (scanf("%ld", &value) != 1)
        exit(99);
    return value;
}

// After its number of steps.
static const dsc_serve_pass *read_script(void)
{
    dsc_error err;
    dsc_serve_pass *pass;
    const long steps = number();
    must(dsc_new(&pass, (size_t)steps + 1, &err), &err);
    for (long i = 0; i < steps; i++) {
        pass[i].verified = (int32_t)number();
        pass[i].drafted = (int32_t)number();
        pass[i].accepted = (int32_t)number();
        pass[i].emitted = (int32_t)number();
        pass[i].draft_passes = pass[i].draft_tokens = (int32_t)number();
    }
    return pass;
}

static void read_item(workload *w)
{
    dsc_error err;
    dsc_serve_draft *draft;
    float *confidence;
    const int32_t prompt = (int32_t)number(), output = (int32_t)number();
    if (w->has_script) {
        if (w->items == MOST)
            exit(99);
        w->script[w->items] = read_script();
        w->item[w->items++] = (dsc_serve_item){.prompt = prompt, .output = output};
        return;
    }
    must(dsc_new(&draft, (size_t)output, &err), &err);
    must(dsc_new(&confidence, (size_t)output, &err), &err);
    for (int32_t t = 0; t < output; t++) {
        draft[t].available = (uint16_t)number();
        draft[t].run = (uint16_t)number();
        confidence[t] = (float)number() / 16;
    }
    if (w->items == MOST)
        exit(99);
    w->item[w->items++] = (dsc_serve_item){
        .prompt = prompt, .output = output, .draft = draft, .confidence = confidence};
}

static void read_policy(workload *w)
{
    dsc_error err;
    char text[256];
    if (scanf("%255s", text) != 1)
        exit(99);
    must(dsc_serve_policy_parse(&w->policy, text, (int32_t)number(), &err), &err);
}

static void read_cost(workload *w)
{
    w->cost.type = &dsc_cost_linear;
    if (scanf("%lf %lf %lf %lf", &w->cost.fixed_s, &w->cost.per_token_s, &w->cost.draft_s,
              &w->price.overhead_s) != 4)
        exit(99);
}

static void read_drafting(workload *w)
{
    char name[16];
    if (scanf("%15s", name) != 1)
        exit(99);
    w->price.drafting = !strcmp(name, "each")   ? DSC_SERVE_DRAFT_EACH
                        : !strcmp(name, "once") ? DSC_SERVE_DRAFT_ONCE
                                                : DSC_SERVE_DRAFT_FREE;
}

static void read_tree(workload *w)
{
    const long levels = number();
    w->has_tree = true;
    for (long i = 0; i < levels && i < 64; i++)
        w->tree[i].tokens = w->tree[i].draft_tokens = (int32_t)number();
    w->widest = (int32_t)number();
}

static void read_kind(workload *w)
{
    char name[16];
    if (scanf("%15s", name) != 1)
        exit(99);
    w->has_script = true;
    w->price.overlap = !strcmp(name, "overlap");
    w->widest = (int32_t)number();
}

static void read_times(workload *w)
{
    w->arrivals.kind = DSC_ARRIVALS_LISTED;
    w->arrivals.rate = 1;
    w->arrivals.time = w->time;
    w->arrivals.times = w->options.requests;
    for (int64_t i = 0; i < w->options.requests && i < MOST; i++)
        if (scanf("%lf", &w->time[i]) != 1)
            exit(99);
}

static void read_setting(workload *w, const char *key)
{
    dsc_serve_options *o = &w->options;
    const long value = number();
    if (!strcmp(key, "requests"))
        o->requests = value;
    else if (!strcmp(key, "closed"))
        w->arrivals = (dsc_arrivals){.kind = DSC_ARRIVALS_CLOSED, .clients = value};
    else if (!strcmp(key, "max_num_seqs"))
        o->max_num_seqs = (int32_t)value;
    else if (!strcmp(key, "max_num_batched_tokens"))
        o->max_num_batched_tokens = (int32_t)value;
    else if (!strcmp(key, "long_prefill_token_threshold"))
        o->long_prefill_token_threshold = (int32_t)value;
    else if (!strcmp(key, "kv_blocks"))
        o->kv_blocks = value;
    else if (!strcmp(key, "block_size"))
        o->block_size = (int32_t)value;
    else if (!strcmp(key, "lookahead"))
        o->lookahead = (int32_t)value;
    else
        exit(99);
}

static void read_workload(workload *w)
{
    char key[64];
    while (scanf("%63s", key) == 1) {
        if (!strcmp(key, "item"))
            read_item(w);
        else if (!strcmp(key, "tree"))
            read_tree(w);
        else if (!strcmp(key, "script"))
            read_kind(w);
        else if (!strcmp(key, "policy"))
            read_policy(w);
        else if (!strcmp(key, "drafting"))
            read_drafting(w);
        else if (!strcmp(key, "cost"))
            read_cost(w);
        else if (!strcmp(key, "recorded"))
            read_times(w);
        else
            read_setting(w, key);
    }
}

static int print_step(void *user, const dsc_serve_engine *e, dsc_error *err)
{
    (void)user, (void)err;
    printf("step %.9f %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, e->now_s,
           e->step.decode_tokens, e->step.prefill_tokens, dsc_serve_waiting(e), e->free_blocks);
    for (int64_t i = 0; i < e->running_count; i++) {
        const dsc_serve_sequence *s = &e->running[i];
        printf(" %" PRId64 ":%d,%d,%d,%d", s->number, s->scheduled, s->computed, s->blocks,
               s->tokens);
    }
    putchar('\n');
    return DSC_OK;
}

static int print_done(void *user, const dsc_serve_sequence *s, dsc_error *err)
{
    (void)user, (void)err;
    printf("done %" PRId64 " %.9f %.9f %.9f %d\n", s->number, s->arrival_s, s->first_s, s->last_s,
           s->preemptions);
    return DSC_OK;
}

int main(void)
{
    static workload w;
    dsc_error err;
    dsc_serve_totals t;
    w.price = (dsc_serve_price){.cost = &w.cost, .prefill_s = NAN};
    w.options = (dsc_serve_options){.drain = true,
                                    .slo_ttft_s = INFINITY,
                                    .slo_tpot_s = INFINITY,
                                    .step = print_step,
                                    .complete = print_done};
    read_workload(&w);
    const dsc_serve_pool pool = {.item = w.item,
                                 .count = w.items,
                                 .tree = w.has_tree ? w.tree : NULL,
                                 .script = w.has_script ? w.script : NULL,
                                 .widest = w.widest};
    must(dsc_serve_run(&t, &pool, &w.arrivals, &w.price, &w.policy, &w.options, &err), &err);
    printf("end %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", t.steps,
           t.preemptions, t.recomputed_tokens, t.num_draft_tokens, t.num_accepted_tokens);
    dsc_serve_totals_fini(&t);
    dsc_serve_policy_fini(&w.policy);
    for (size_t i = 0; i < w.items; i++) {
        free(w.has_script ? (void *)w.script[i] : (void *)w.item[i].draft);
        free((void *)w.item[i].confidence);
    }
    return 0;
}
