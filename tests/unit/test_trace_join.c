// SPDX-License-Identifier: Apache-2.0
// Merge and append: the result is what one writer would have written of all requests; traces that
// do not fit are refused by name; what an append or a failed run leaves behind.
#include "tests/unit/trace_fixture.h"
#include "traces/trace/trace_join.h"

// --- traces ------------------------------------------------------------------------------------

// Request i of 8 for any description: values depend on i and the drafter's name only.
enum { REQUESTS = 8, LONGEST = 9, DEPTH = 2, K = 2 };

typedef struct made {
    char id[16];
    int32_t token[LONGEST + 1];
    float logp[LONGEST], kseq[LONGEST][K][2];
    uint16_t rank[LONGEST][DEPTH], accept[2][LONGEST], accepted[LONGEST];
} made;

static dsc_request_input request_of(made *m, int i, const dsc_trace_info *info)
{
    int n = 1 + i;
    snprintf(m->id, sizeof m->id, "r%d", i);
    for (int j = 0; j <= LONGEST; j++)
        m->token[j] = 10 * i + j;
    for (int j = 0; j < LONGEST; j++) {
        m->logp[j] = -(float)(i + j);
        m->accepted[j] = 0;
        for (int d = 0; d < info->drafters; d++)
            m->accept[d][j] = (uint16_t)((info->drafter[d].name[0] + i + j) % 4);
        for (int d = 0; d < DEPTH; d++)
            m->rank[j][d] = (uint16_t)(i + j + d);
        for (int k = 0; k < K; k++)
            m->kseq[j][k][0] = m->kseq[j][k][1] = 1;
    }
    return (dsc_request_input){
        .id = {m->id, (int64_t)strlen(m->id)},
        .prompt = {m->token, 3},
        .output = {m->token, n},
        .target_logp = m->logp,
        .draft_logp = m->logp,
        .accept = {m->accept[0], m->accept[1]},
        .steps = {.count = n, .accepted = m->accepted},
        .replayed.draft_rank = m->rank[0],
        .sufficient.kseq = m->kseq[0][0],
    };
}

static dsc_trace_info full_info(void)
{
    dsc_trace_info info = sample_info(false, true);
    info.has_draft_logp = info.has_draft_rank = info.has_kseq = true;
    info.rank_depth = DEPTH;
    info.statistics_k = K;
    info.steps = DSC_STEPS_ALIGNED;
    info.drafters = 2;
    info.drafter[0] = (dsc_drafter_record){"eagle", 5};
    info.drafter[1] = (dsc_drafter_record){"ngram", 7};
    return info;
}

static void add_requests(dsc_trace_writer *w, const dsc_trace_info *info, int first, int last)
{
    dsc_error err = {0};
    for (int i = first; i <= last; i++) {
        made m;
        dsc_request_input q = request_of(&m, i, info);
        expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
    }
}

static void write_range(const char *name, const dsc_trace_info *info, int first, int last)
{
    dsc_error err = {0};
    dsc_trace_writer *w;
    expect_ok(dsc_trace_writer_open(&w, in_scratch(name), info, true, 20, &err), &err);
    add_requests(w, info, first, last);
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
}

static int merge(const char *const *names, size_t count, const char *out, dsc_join_options o,
                 dsc_error *err)
{
    const char *path[4];
    char copy[4][400];
    for (size_t i = 0; i < count; i++) {
        snprintf(copy[i], sizeof copy[i], "%s/%s", scratch, names[i]);
        path[i] = copy[i];
    }
    o.note = keep_note;
    o.shard_tokens = o.shard_tokens ? o.shard_tokens : 20;
    *notes = '\0';
    *err = (dsc_error){0};
    return dsc_trace_merge(path, count, in_scratch(out), &o, err);
}

static int append_one(const char *name, const char *more, dsc_join_options o, dsc_error *err)
{
    const char *path = in_scratch(more);
    o.note = keep_note;
    o.shard_tokens = o.shard_tokens ? o.shard_tokens : 20;
    *notes = '\0';
    *err = (dsc_error){0};
    return dsc_trace_append(in_scratch(name), &path, 1, &o, err);
}

#define MERGE(out, options, err, ...)                                                              \
    merge((const char *const[]){__VA_ARGS__},                                                      \
          sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), out, options, err)

static const dsc_join_options plain = {0};

// The hash of a trace that verifies, and how many requests it has.
static const char *hash_of(const char *name, int64_t *requests)
{
    static char hash[4][DSC_SHA256_HEX];
    static int next;
    dsc_error err = {0};
    dsc_trace *t;
    expect_ok(verify(name, &err), &err);
    expect_ok(dsc_trace_open(&t, in_scratch(name), &err), &err);
    char *h = memcpy(hash[next++ % 4], dsc_trace_get_info(t)->hash, DSC_SHA256_HEX);
    if (requests)
        *requests = dsc_trace_get_info(t)->requests;
    dsc_trace_close(t);
    return h;
}

static void expect_requests(const char *name, int64_t want)
{
    int64_t n;
    hash_of(name, &n);
    assert_int_equal(n, want);
}

// --- merge -------------------------------------------------------------------------------------

static void merged_as_if_written_at_once(void **state)
{
    (void)state;
    dsc_error err;
    const dsc_trace_info info = full_info();
    write_range("all.dst", &info, 0, 7);
    write_range("a.dst", &info, 0, 2);
    write_range("b.dst", &info, 3, 3);
    write_range("none.dst", &info, 1, 0);
    write_range("c.dst", &info, 4, 7);
    expect_ok(MERGE("m.dst", plain, &err, "a.dst", "b.dst", "none.dst", "c.dst"), &err);
    assert_string_equal(hash_of("m.dst", NULL), hash_of("all.dst", NULL));
    assert_string_equal(notes, "");
    // Shards of another size and back.
    expect_ok(MERGE("one.dst", (dsc_join_options){.shard_tokens = 1000}, &err, "m.dst"), &err);
    assert_string_not_equal(hash_of("one.dst", NULL), hash_of("all.dst", NULL));
    expect_ok(MERGE("back.dst", plain, &err, "one.dst"), &err);
    assert_string_equal(hash_of("back.dst", NULL), hash_of("all.dst", NULL));
    // The output may replace an input, if asked.
    int rc = MERGE("a.dst", plain, &err, "a.dst", "b.dst");
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst exists already");
    expect_ok(MERGE("a.dst", (dsc_join_options){.force = true}, &err, "a.dst", "b.dst"), &err);
    expect_requests("a.dst", 4);
}

static void provenance_names_the_sources(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace *t;
    dsc_trace_info info = full_info();
    write_range("a.dst", &info, 0, 2);
    info.format = "vllm";
    write_range("b.dst", &info, 3, 3);
    const dsc_join_options o = {.version = "9", .command = "merge \xff"};
    expect_ok(MERGE("m.dst", o, &err, "a.dst", "b.dst"), &err);
    expect_ok(dsc_trace_open(&t, in_scratch("m.dst"), &err), &err);
    assert_string_equal(dsc_trace_get_info(t)->format, "mixed");
    assert_string_equal(dsc_trace_get_info(t)->semantics, "paper");
    json_t *all = json_loads(dsc_trace_get_info(t)->provenance, 0, NULL);
    json_t *source = json_array_get(json_object_get(all, "sources"), 1);
    assert_string_equal(json_string_value(json_object_get(all, "version")), "9");
    assert_string_equal(json_string_value(json_object_get(all, "command")), "merge ?");
    assert_string_equal(json_string_value(json_object_get(source, "trace")), "b.dst");
    assert_string_equal(json_string_value(json_object_get(source, "hash")), hash_of("b.dst", NULL));
    assert_int_equal(json_integer_value(json_object_get(source, "requests")), 1);
    assert_non_null(json_object_get(json_object_get(source, "provenance"), "version"));
    json_decref(all);
    dsc_trace_close(t);
}

static void ids_that_occur_twice(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace *t;
    dsc_shard *s;
    dsc_request q;
    const dsc_trace_info info = full_info();
    write_range("a.dst", &info, 0, 1);
    write_range("b.dst", &info, 2, 3);
    write_range("c.dst", &info, 3, 4);
    int rc = MERGE("m.dst", plain, &err, "a.dst", "b.dst", "c.dst");
    expect_failure(rc, DSC_EUSAGE, &err, "b.dst and ");
    expect_failure(rc, DSC_EUSAGE, &err, "c.dst both have a request 'r3' (--rename");
    assert_false(exists("m.dst") || exists("m.dst.tmp"));
    const dsc_join_options o = {.rename = true, .shard_tokens = 1000};
    expect_ok(MERGE("m.dst", o, &err, "a.dst", "b.dst", "c.dst"), &err);
    expect_requests("m.dst", 6);
    expect_ok(dsc_trace_open(&t, in_scratch("m.dst"), &err), &err);
    expect_ok(dsc_shard_open(&s, t, 0, &err), &err);
    dsc_shard_request(s, 4, &q);
    assert_int_equal(q.id.length, 4);
    assert_memory_equal(q.id.bytes, "3/r3", 4);
    dsc_shard_close(s);
    dsc_trace_close(t);
}

// One thing that differs from full_info, and the words for it.
typedef struct difference {
    void (*change)(dsc_trace_info *i);
    const char *words, *note; // note: with --common; NULL: refused all the same
} difference;

static void other_name(dsc_trace_info *i)
{
    i->tokenizer_name = "other";
}
static void other_file(dsc_trace_info *i)
{
    i->tokenizer_sha256[5] = 'b';
}
static void other_size(dsc_trace_info *i)
{
    i->vocab_size++;
}
static void other_end(dsc_trace_info *i)
{
    i->eos_token = -1;
}
static void no_logp(dsc_trace_info *i)
{
    i->has_draft_logp = false;
}
static void more(dsc_trace_info *i)
{
    i->has_step_drafted = true;
}
static void no_steps(dsc_trace_info *i)
{
    i->steps = DSC_STEPS_NONE;
}
static void logged(dsc_trace_info *i)
{
    i->steps = DSC_STEPS_LOGGED;
}
static void other_depth(dsc_trace_info *i)
{
    i->rank_depth = 1;
}
static void other_k(dsc_trace_info *i)
{
    i->statistics_k = 1;
}
static void other_cap(dsc_trace_info *i)
{
    i->drafter[1].cap = 6;
}
static void one_drafter(dsc_trace_info *i)
{
    i->drafters = 1;
}
static void no_drafter(dsc_trace_info *i)
{
    i->drafters = 0;
}

static const difference differences[] = {
    {other_name, "the tokenizer of", NULL},
    {other_file, "are different files", NULL},
    {other_size, "has 1000 tokens", NULL},
    {other_end, "the EOS token of", NULL},
    {no_logp, "a.dst has draft_logp", "draft_logp is left out: "},
    {more, "b.dst has step_drafted", "step_drafted is left out: "},
    {no_steps, "a.dst has steps_aligned", "steps_aligned is left out: "},
    {logged, "b.dst has steps (", "steps_aligned is left out: some traces have logged steps"},
    {other_depth, "rank_depth is 2 in", "draft_rank is left out: the traces have it in different"},
    {other_k, "statistics_k is 2 in", "kseq is left out: the traces have it in different"},
    {other_cap, "the cap of accept.ngram is 7 in", "accept.ngram is left out: its cap differs"},
    {one_drafter, "a.dst has accept.ngram", "accept.ngram is left out: "},
    {no_drafter, "a.dst has accept.eagle", "accept.eagle is left out: "},
};

static void write_different(const difference *d)
{
    dsc_error err = {0};
    dsc_trace_writer *w;
    dsc_trace_info info = full_info();
    uint16_t drafted[LONGEST] = {0};
    d->change(&info);
    expect_ok(dsc_trace_writer_open(&w, in_scratch("b.dst"), &info, true, 20, &err), &err);
    for (int i = 4; i < 8; i++) {
        made m;
        dsc_request_input q = request_of(&m, i, &info);
        q.steps.drafted = drafted;
        expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
}

static void traces_that_do_not_fit(void **state)
{
    (void)state;
    dsc_error err;
    const dsc_trace_info info = full_info();
    const dsc_join_options common = {.common = true, .force = true};
    write_range("a.dst", &info, 0, 3);
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        const difference *d = &differences[i];
        write_different(d);
        int rc = MERGE("m.dst", plain, &err, "a.dst", "b.dst");
        expect_failure(rc, DSC_EUSAGE, &err, d->words);
        assert_true(!exists("m.dst") && !exists("m.dst.tmp"));
        rc = MERGE("c.dst", common, &err, "a.dst", "b.dst");
        if (!d->note) {
            expect_failure(rc, DSC_EUSAGE, &err, d->words);
            continue;
        }
        expect_ok(rc, &err);
        expect_requests("c.dst", 8);
        if (!strstr(notes, d->note))
            fail_msg("'%s' is not in '%s'", d->note, notes);
    }
}

// A trace without some columns equals one that a writer without them writes.
static void common_columns(void **state)
{
    (void)state;
    dsc_error err;
    const dsc_trace_info info = full_info();
    dsc_trace_info less = info;
    less.has_kseq = false;
    less.statistics_k = 0;
    less.drafters = 1;
    less.drafter[0] = info.drafter[1];
    write_range("a.dst", &info, 0, 3);
    write_range("b.dst", &less, 4, 7);
    write_range("want.dst", &less, 0, 7);
    expect_ok(MERGE("m.dst", (dsc_join_options){.common = true}, &err, "a.dst", "b.dst"), &err);
    assert_string_equal(hash_of("m.dst", NULL), hash_of("want.dst", NULL));
    expect_ok(MERGE("n.dst", (dsc_join_options){.common = true}, &err, "b.dst", "a.dst"), &err);
    // Appended to the one that has less; not to the one that has more.
    int rc = append_one("a.dst", "b.dst", (dsc_join_options){.common = true}, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst has kseq");
    rc = append_one("b.dst", "a.dst", plain, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst has kseq");
    expect_ok(append_one("b.dst", "a.dst", (dsc_join_options){.common = true}, &err), &err);
    const dsc_join_options one_shard = {.shard_tokens = 1000};
    assert_non_null(strstr(notes, "kseq is left out: "));
    assert_non_null(strstr(notes, "accept.eagle is left out: "));
    expect_ok(MERGE("b1.dst", one_shard, &err, "b.dst"), &err);
    expect_ok(MERGE("n1.dst", one_shard, &err, "n.dst"), &err);
    assert_string_equal(hash_of("b1.dst", NULL), hash_of("n1.dst", NULL));
}

static void drafters_in_another_order(void **state)
{
    (void)state;
    dsc_error err;
    const dsc_trace_info info = full_info();
    dsc_trace_info turned = info;
    turned.drafter[0] = info.drafter[1];
    turned.drafter[1] = info.drafter[0];
    write_range("all.dst", &info, 0, 7);
    write_range("a.dst", &info, 0, 3);
    write_range("b.dst", &turned, 4, 7);
    expect_ok(MERGE("m.dst", plain, &err, "a.dst", "b.dst"), &err);
    assert_string_equal(hash_of("m.dst", NULL), hash_of("all.dst", NULL));
    dsc_trace_writer *w;
    int rc = dsc_trace_writer_append(&w, in_scratch("b.dst"), &info, 0, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "drafter 0 of");
    expect_ok(append_one("a.dst", "b.dst", plain, &err), &err);
    expect_requests("a.dst", 8);
}

static void rows_and_texts(void **state)
{
    (void)state;
    dsc_error err;
    write_samples("a.dst", true, true, 1);
    write_samples("b.dst", false, true, 1);
    const dsc_join_options o = {.rename = true, .common = true};
    int rc = MERGE("m.dst", (dsc_join_options){.rename = true}, &err, "a.dst", "b.dst");
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst has text");
    expect_ok(MERGE("m.dst", o, &err, "a.dst", "b.dst"), &err);
    assert_non_null(strstr(notes, "text is left out: "));
    expect_requests("m.dst", 2 * SAMPLES);
    expect_ok(MERGE("n.dst", (dsc_join_options){.shard_tokens = 1}, &err, "a.dst"), &err);
    assert_string_equal(hash_of("n.dst", NULL), hash_of("a.dst", NULL));
}

// --- append ------------------------------------------------------------------------------------

static void appended_shards(void **state)
{
    (void)state;
    dsc_error err;
    dsc_trace *before, *after;
    dsc_shard *s;
    const dsc_trace_info info = full_info();
    write_range("a.dst", &info, 0, 2);
    write_range("b.dst", &info, 3, 7);
    expect_ok(dsc_trace_open(&before, in_scratch("a.dst"), &err), &err);
    int64_t shards = dsc_trace_shards(before);
    put_file(in_scratch("a.dst/notes.txt"), "x", 1); // a user's own, not looked at
    expect_ok(append_one("a.dst", "b.dst", (dsc_join_options){.version = "9"}, &err), &err);
    assert_true(exists("a.dst/notes.txt"));
    expect_requests("a.dst", 8);
    // Who opened it before still has what it was.
    expect_ok(dsc_trace_verify(before, &err), &err);
    expect_ok(dsc_shard_open(&s, before, shards - 1, &err), &err);
    dsc_shard_close(s);
    expect_ok(dsc_trace_open(&after, in_scratch("a.dst"), &err), &err);
    assert_true(dsc_trace_shards(after) > shards);
    for (int64_t i = 0; i < shards; i++)
        assert_string_equal(after->shard[i].sha256, before->shard[i].sha256);
    json_t *all = json_loads(dsc_trace_get_info(after)->provenance, 0, NULL);
    json_t *list = json_object_get(all, "appended"), *first = json_array_get(list, 0);
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_string_value(json_object_get(first, "version")), "9");
    assert_string_equal(json_string_value(json_object_get(all, "version")), "0.1");
    json_decref(all);
    dsc_trace_close(before);
    dsc_trace_close(after);
    // The same again: its ids are there.
    const char *hash = hash_of("a.dst", NULL);
    int rc = append_one("a.dst", "b.dst", plain, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "both have a request 'r3'");
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst and ");
    assert_string_equal(hash_of("a.dst", NULL), hash);
    expect_ok(append_one("a.dst", "b.dst", (dsc_join_options){.rename = true}, &err), &err);
    expect_requests("a.dst", 13);
}

static void killed_append(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace_writer *w;
    const dsc_trace_info info = full_info();
    write_range("a.dst", &info, 0, 2);
    const char *hash = hash_of("a.dst", NULL);
    put_file(in_scratch("a.dst/shard-00001.safetensors"), "x", 1); // what it leaves
    put_file(in_scratch("a.dst/shard-00007.safetensors"), "x", 1);
    put_file(in_scratch("a.dst/shard-00008.safetensors.tmp"), "x", 1);
    put_file(in_scratch("a.dst/manifest.json.tmp"), "x", 1);
    assert_string_equal(hash_of("a.dst", NULL), hash);
    expect_ok(dsc_trace_writer_append(&w, in_scratch("a.dst"), &info, 1, &err), &err);
    assert_false(exists("a.dst/shard-00007.safetensors") || exists("a.dst/manifest.json.tmp") ||
                 exists("a.dst/shard-00008.safetensors.tmp"));
    add_requests(w, &info, 3, 5); // the third waits for the second
    assert_true(exists("a.dst/shard-00002.safetensors"));
    assert_string_equal(hash_of("a.dst", NULL), hash); // nobody sees it before the commit
    dsc_trace_writer_abort(w);
    assert_false(exists("a.dst/shard-00001.safetensors") ||
                 exists("a.dst/shard-00002.safetensors") ||
                 exists("a.dst/shard-00003.safetensors"));
    assert_true(exists("a.dst/shard-00000.safetensors"));
    assert_string_equal(hash_of("a.dst", NULL), hash);
}

static void failed_append(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace_writer *w;
    const dsc_trace_info info = full_info();
    write_range("a.dst", &info, 0, 2);
    const char *hash = hash_of("a.dst", NULL);
    for (int i = 0; i < 2; i++) {
        const char *shard = "a.dst/shard-00001.safetensors";
        expect_ok(dsc_trace_writer_append(&w, in_scratch("a.dst"), &info, 0, &err), &err);
        add_requests(w, &info, 3, 4);
        if (i == 0)
            put_file(in_scratch(shard), "x", 1); // the shard cannot be written
        expect_failure(dsc_trace_writer_commit(w, i ? "[]" : NULL, &err), DSC_EUSAGE, &err,
                       i ? "provenance must be a JSON object" : "exists already");
        assert_string_equal(hash_of("a.dst", NULL), hash);
        assert_false(exists(shard));
    }
}

static void only_one_at_a_time(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace_writer *w, *second;
    const dsc_trace_info info = full_info();
    write_range("a.dst", &info, 0, 2);
    expect_ok(dsc_trace_writer_append(&w, in_scratch("a.dst/"), &info, 0, &err), &err);
    int rc = dsc_trace_writer_append(&second, in_scratch("a.dst"), &info, 0, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "a.dst is being written by another run");
    assert_null(second);
    // Nor may it be replaced meanwhile; what was to replace it stays.
    expect_ok(dsc_trace_writer_open(&second, in_scratch("a.dst"), &info, true, 0, &err), &err);
    add_requests(second, &info, 7, 7);
    rc = dsc_trace_writer_commit(second, NULL, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "the trace is complete and kept in");
    expect_requests("a.dst.tmp", 1);
    add_requests(w, &info, 3, 4);
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    expect_requests("a.dst", 5);
    rc = dsc_trace_writer_append(&w, in_scratch("absent.dst"), &info, 0, &err);
    expect_failure(rc, DSC_EINPUT, &err, "absent.dst: No such file");
    assert_int_equal(mkdir(in_scratch("empty.dst"), 0777), 0);
    rc = dsc_trace_writer_append(&w, in_scratch("empty.dst"), &info, 0, &err);
    expect_failure(rc, DSC_EINPUT, &err, "empty.dst/manifest.json");
    rc = append_one("a.dst", "absent.dst", plain, &err);
    expect_failure(rc, DSC_EINPUT, &err, "absent.dst");
}

// --- what an unfinished run has -----------------------------------------------------------------

// Shards are written in the background.
static void wait_for_requests(const char *name, int64_t count)
{
    int64_t is = 0;
    for (int i = 0; i < 10000 && is < count; i++) {
        dsc_trace *t;
        if (!dsc_trace_open(&t, in_scratch(name), NULL))
            is = dsc_trace_get_info(t)->requests;
        dsc_trace_close(t);
        usleep(1000);
    }
    expect_requests(name, count);
}

static void finished_shards_can_be_read(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace_writer *w;
    const dsc_trace_info info = full_info();
    expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, false, 10, &err), &err);
    assert_false(exists("a.dst.tmp/manifest.json"));
    add_requests(w, &info, 0, 5); // 4, 5, 6; 7, 8; 9 tokens
    wait_for_requests("a.dst.tmp", 5);
    int rc = MERGE("a.dst", plain, &err, "a.dst.tmp");
    expect_failure(rc, DSC_EUSAGE, &err, "would remove");
    expect_ok(MERGE("b.dst", plain, &err, "a.dst.tmp"), &err);
    expect_requests("b.dst", 5);
    expect_requests("a.dst.tmp", 5); // left alone
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
    expect_requests("a.dst", 6);
    assert_false(exists("a.dst.tmp"));
    // By another name of the same folder.
    assert_int_equal(rename(in_scratch("b.dst"), in_scratch("x.dst.old")), 0);
    assert_int_equal(symlink("x.dst.old", in_scratch("link.dst")), 0);
    rc = MERGE("x.dst///", plain, &err, "link.dst");
    expect_failure(rc, DSC_EUSAGE, &err, "would remove");
}

// By default, eight shards at a time become part of the trace; so does what is finished when a
// later one cannot be written.
static void groups_of_shards(void **state)
{
    (void)state;
    enum { SHARD = 2000 * 1000 };
    static int32_t token[SHARD + 10];
    const dsc_trace_info info = sample_info(false, false);
    dsc_error err = {0};
    for (int i = 0; i < SHARD + 10; i++)
        token[i] = i % VOCAB;
    for (int full = 0; full < 2; full++) {
        dsc_trace_writer *w;
        expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, 0, &err), &err);
        if (full)
            put_file(in_scratch("a.dst.tmp/shard-00009.safetensors"), "x", 1);
        for (char i = '0'; i <= '9'; i++) {
            const dsc_request_input q = {.id = {&i, 1}, .output = {token + (i - '0'), SHARD}};
            expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
        }
        if (!full)
            wait_for_requests("a.dst.tmp", 8);
        int rc = dsc_trace_writer_commit(w, NULL, &err);
        if (full)
            expect_failure(rc, DSC_EUSAGE, &err, "the first 9 requests are kept in");
        else
            expect_ok(rc, &err);
        expect_requests(full ? "a.dst.tmp" : "a.dst", full ? 9 : 10);
    }
}

static int stop_at_three(void *user, int64_t done, int64_t total)
{
    (void)user;
    assert_int_equal(total, 8);
    return done == 3;
}

static void interrupted(void **state)
{
    (void)state;
    dsc_error err;
    const dsc_trace_info info = full_info();
    const dsc_join_options o = {.progress = stop_at_three};
    write_range("all.dst", &info, 0, 7);
    write_range("a.dst", &info, 0, -1);
    expect_failure(MERGE("m.dst", o, &err, "all.dst"), DSC_EINTERRUPT, &err, "after 3 requests");
    assert_false(exists("m.dst") || exists("m.dst.tmp"));
    expect_failure(append_one("a.dst", "all.dst", o, &err), DSC_EINTERRUPT, &err, "nothing");
    expect_requests("a.dst", 0);
    assert_false(exists("a.dst/shard-00000.safetensors"));
    expect_ok(append_one("a.dst", "all.dst", plain, &err), &err);
    assert_string_equal(hash_of("a.dst", NULL), hash_of("all.dst", NULL));
    expect_failure(dsc_trace_merge(NULL, 0, in_scratch("m.dst"), &plain, &err), DSC_EUSAGE, &err,
                   "no traces");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(trace_join)
{
    const struct CMUnitTest tests[] = {
        TEST(merged_as_if_written_at_once),
        TEST(provenance_names_the_sources),
        TEST(ids_that_occur_twice),
        TEST(traces_that_do_not_fit),
        TEST(common_columns),
        TEST(drafters_in_another_order),
        TEST(rows_and_texts),
        TEST(appended_shards),
        TEST(killed_append),
        TEST(failed_append),
        TEST(only_one_at_a_time),
        TEST(finished_shards_can_be_read),
        TEST(groups_of_shards),
        TEST(interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
