// SPDX-License-Identifier: Apache-2.0
// The engine against transformers, on the checkpoints of tests/oracle/fixtures: one forward, token
// by token, a tree in one pass and level by level, what a commit leaves, heads.
#include "tests/cross/device.h"

#include "live/session/session.h"

#include <dirent.h>
#include <string.h>

enum { CONTEXT = 16, ROOM = 40, NODES = 16 };

static const char *device, *folder;

typedef struct fixture {
    char name[64];
    live_backend *b;
    live_weights *w;
    live_session *s;
    dsc_safetensors *expected;
    dsc_token_view text;
    double bound;
} fixture;

static const dsc_tensor *expected(const fixture *f, const char *name)
{
    const dsc_tensor *t = dsc_safetensors_find(f->expected, name);
    if (!t)
        fail_msg("%s: no %s", f->name, name);
    return t;
}

static live_backend *open_device(void)
{
    live_backend *b;
    dsc_error err;
    assert_ok(live_backend_open(&b, device, 1, false, &err), err);
    return b;
}

// Weights of 16 bits stay so on a GPU, whose matrices are then multiplied by numbers of 16 bits.
static double bound_of(const live_weights *w)
{
    if (!strncmp(device, "cpu", 3) || w->config.dtype == DSC_F32)
        return 2e-5;
    return w->config.dtype == DSC_F16 ? 1e-2 : 5e-2;
}

// Expected values are those of the folder `name`; `weights` (NULL: the folder) is the checkpoint.
static void fixture_open_as(fixture *f, const char *name, const char *weights, live_backend *b,
                            live_session *target)
{
    char path[512];
    dsc_error err;
    *f = (fixture){.b = b ? b : open_device()};
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(live_weights_load(&f->w, weights ? weights : path, f->b, NULL, &err), err);
    assert_ok(live_session_new(&f->s, f->w, target, ROOM, NODES, &err), err);
    strcat(path, "/expected.safetensors");
    assert_ok(dsc_safetensors_open(&f->expected, path, &err), err);
    const dsc_tensor *tokens = expected(f, "tokens");
    f->text = (dsc_token_view){tokens->data, tokens->count};
    f->bound = bound_of(f->w);
}

static void fixture_open(fixture *f, const char *name, live_backend *b, live_session *target)
{
    fixture_open_as(f, name, NULL, b, target);
}

static void fixture_close(fixture *f, bool with_device)
{
    live_session_free(f->s);
    live_weights_free(f->w);
    dsc_safetensors_close(f->expected);
    if (with_device)
        f->b->type->close(f->b);
}

// The largest difference over the largest number.
static void assert_row(const fixture *f, const char *what, int64_t row, const float *got,
                       const dsc_tensor *want)
{
    const int64_t vocab = want->shape[1];
    const float *w = (const float *)want->data + row * vocab;
    double most = 0, off = 0;
    for (int64_t i = 0; i < want->count; i++)
        if (isfinite(((const float *)want->data)[i]))
            most = fmax(most, fabs((double)((const float *)want->data)[i]));
    for (int64_t x = 0; x < vocab; x++) {
        if (w[x] == -INFINITY) { // a token that the head cannot draft
            assert_true(got[x] == -INFINITY);
            continue;
        }
        assert_true(isfinite(got[x]));
        off = fmax(off, fabs((double)got[x] - (double)w[x]));
    }
    if (!(off <= f->bound * most))
        fail_msg("%s: %s, row %ld: %.3g off, %.3g allowed", f->name, what, (long)row, off / most,
                 f->bound);
}

static void assert_logits(const fixture *f, const char *what, int32_t node, int64_t row,
                          const dsc_tensor *want)
{
    const float *got;
    dsc_error err;
    assert_ok(live_session_logits(f->s, node, &got, &err), err);
    assert_row(f, what, row, got, want);
}

static const live_sampling greedy = {0, 0, 1};

static void begin(const fixture *f, int64_t prompt)
{
    dsc_error err;
    const dsc_token_view view = {f->text.id, prompt};
    assert_ok(live_session_begin(f->s, view, ROOM - prompt, &greedy, &err), err);
}

static void score(const fixture *f, const dsc_draft *d)
{
    dsc_error err;
    dsc_model *m = live_session_model(f->s);
    assert_ok(m->type->score(m, d, &err), err);
}

static void commit(const fixture *f, const int32_t *token, size_t n)
{
    dsc_error err;
    dsc_model *m = live_session_model(f->s);
    assert_ok(m->type->commit(m, token, n, &err), err);
}

// --- one text ------------------------------------------------------------------------------------

typedef struct replayed {
    const fixture *f;
    const char *want;
    int64_t first, rows;
} replayed;

static int replay_row(void *user, int64_t i, const float *logits, dsc_error *err)
{
    replayed *o = user;
    (void)err;
    assert_int_equal(i, o->rows);
    assert_row(o->f, "one forward", o->first + i, logits, expected(o->f, o->want));
    o->rows++;
    return DSC_OK;
}

static void check_text(const fixture *f)
{
    dsc_error err;
    const dsc_draft none = {0};
    for (int64_t prompt = 1; prompt < f->text.count; prompt += 9) {
        replayed o = {f, "logits", prompt - 1, 0};
        const dsc_token_view head = {f->text.id, prompt},
                             tail = {f->text.id + prompt, f->text.count - prompt};
        assert_ok(live_session_replay(f->s, head, tail, replay_row, &o, &err), err);
        assert_int_equal(o.rows, tail.count);
    }
    begin(f, CONTEXT);
    for (int64_t i = CONTEXT; i < f->text.count; i++) {
        score(f, &none);
        assert_logits(f, "token by token", -1, i - 1, expected(f, "logits"));
        commit(f, f->text.id + i, 1);
    }
}

// --- a tree --------------------------------------------------------------------------------------

// The first `count` nodes of the fixture's tree.
static dsc_draft tree_of(const fixture *f, size_t count)
{
    return (dsc_draft){.token = (int32_t *)(uintptr_t)expected(f, "tree_token")->data,
                       .parent = (int32_t *)(uintptr_t)expected(f, "parent")->data,
                       .count = count,
                       .proposed = count};
}

static void check_tree_nodes(const fixture *f, size_t count, const char *what)
{
    for (size_t n = 0; n < count; n++)
        assert_logits(f, what, (int32_t)n, (int64_t)n, expected(f, "tree_logits"));
}

static size_t path_to(const dsc_draft *d, int32_t node, int32_t *path)
{
    size_t depth = 0, i;
    for (int32_t n = node; n >= 0; n = d->parent[n])
        depth++;
    i = depth;
    for (int32_t n = node; n >= 0; n = d->parent[n])
        path[--i] = d->token[n];
    return depth;
}

// Along the way to each node: what is committed is the way without its last token and that; then
// the next pass must see just what a tree's node saw.
static void check_commits(const fixture *f, size_t count, int64_t context)
{
    const dsc_draft all = tree_of(f, count), none = {0};
    for (size_t n = 0; n < count; n++) {
        int32_t path[NODES];
        const size_t depth = path_to(&all, (int32_t)n, path);
        begin(f, context);
        score(f, &all);
        commit(f, path, depth);
        score(f, &none);
        assert_logits(f, "after a commit", -1, (int64_t)n, expected(f, "tree_logits"));
    }
}

static void check_tree(const fixture *f, int64_t context)
{
    const size_t count = (size_t)expected(f, "parent")->count;
    begin(f, context);
    const dsc_draft all = tree_of(f, count);
    score(f, &all);
    check_tree_nodes(f, count, "tree in one pass");
    begin(f, context);
    for (size_t n = 0; n <= count; n++) {
        const dsc_draft some = tree_of(f, n);
        score(f, &some);
    }
    check_tree_nodes(f, count, "tree node by node");
    check_commits(f, count, context);
}

// --- all of them ---------------------------------------------------------------------------------

static bool is_checkpoint(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/expected.safetensors", folder, name);
    return name[0] != '.' && access(path, R_OK) == 0;
}

// Whether the device refuses this model, a mixture of experts.
static bool is_refused(const char *name)
{
    char path[512];
    dsc_error err;
    live_config c;
    live_weights *w;
    live_backend *b = open_device();
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(live_config_read(&c, path, &err), err);
    const bool refused = c.experts && !b->type->pass.experts;
    if (refused)
        assert_int_equal(live_weights_load(&w, path, b, NULL, &err), DSC_EABSENT);
    b->type->close(b);
    return refused;
}

static void models_are_those_of_transformers(void **state)
{
    (void)state;
    int seen = 0;
    DIR *d = opendir(folder);
    if (!d)
        fail_msg("no folder %s", folder);
    for (struct dirent *e; (e = readdir(d));) {
        if (!is_checkpoint(e->d_name) || strstr(e->d_name, "eagle") || strstr(e->d_name, "medusa"))
            continue;
        fixture f;
        seen++;
        if (is_refused(e->d_name))
            continue;
        fixture_open(&f, e->d_name, NULL, NULL);
        check_text(&f);
        check_tree(&f, CONTEXT);
        fixture_close(&f, true);
    }
    closedir(d);
    assert_true(seen >= 25);
}

// A GGUF file of the same weights; tests/oracle/make_gguf.py.
static void gguf_files_are_those_of_transformers(void **state)
{
    static const char *const names[] = {"llama", "llama3", "llama_bf16", "llama_fp16", "qwen2",
                                        "qwen3", "gpt2",   "gemma3_new", "gemma3_text"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        fixture f;
        snprintf(path, sizeof path, "%s/../gguf/%s.gguf", folder, names[i]);
        fixture_open_as(&f, names[i], path, NULL, NULL);
        check_text(&f);
        check_tree(&f, CONTEXT);
        fixture_close(&f, true);
    }
}

// --- heads ---------------------------------------------------------------------------------------

static void begin_both(const fixture *target, const fixture *head, dsc_token_view text)
{
    dsc_error err;
    assert_ok(live_session_begin(target->s, text, ROOM - text.count, &greedy, &err), err);
    assert_ok(live_session_begin(head->s, text, ROOM - text.count, &greedy, &err), err);
}

static void check_eagle(const char *name, const fixture *target)
{
    dsc_error err;
    fixture f;
    dsc_draft chain = {0};
    fixture_open(&f, name, target->b, target->s);
    const dsc_tensor *token = expected(&f, "chain_token");
    begin_both(target, &f, f.text);
    for (int64_t i = 0; i < token->count; i++) {
        dsc_next next;
        dsc_model *m = live_session_model(f.s);
        const int32_t t = ((const int32_t *)token->data)[i];
        score(&f, &chain);
        assert_logits(&f, "chain", (int32_t)i - 1, i, expected(&f, "chain_logits"));
        assert_ok(m->type->next(m, (int32_t)i - 1, &next, &err), err);
        assert_int_equal(next.token, t);
        assert_ok(dsc_draft_append_chain(&chain, (int32_t)i - 1, &t, 1, &err), err);
    }
    begin_both(target, &f, f.text);
    const size_t nodes = (size_t)expected(&f, "parent")->count;
    const dsc_draft all = tree_of(&f, nodes);
    score(&f, &all);
    check_tree_nodes(&f, nodes, "tree of the head");
    replayed o = {&f, "pair_logits", 0, 0};
    const dsc_token_view head = {f.text.id, 2}, tail = {f.text.id + 2, f.text.count - 2};
    assert_ok(live_session_replay(f.s, head, tail, replay_row, &o, &err), err);
    dsc_draft_fini(&chain);
    fixture_close(&f, false);
}

static void check_medusa(const char *name, const fixture *target)
{
    fixture f;
    dsc_error err;
    fixture_open(&f, name, target->b, target->s);
    // The feature of the last token is drafted from; the target's next token is already there.
    int32_t text[ROOM] = {0};
    memcpy(text, f.text.id, (size_t)f.text.count * sizeof *text);
    begin_both(target, &f, (dsc_token_view){text, f.text.count + 1});
    const dsc_tensor *want = expected(&f, "logits");
    dsc_draft chain = {0};
    score(&f, &chain);
    for (int64_t h = 0; h < want->shape[0]; h++) {
        const int32_t any = 1;
        assert_logits(&f, "head", (int32_t)h - 1, h, want);
        assert_ok(dsc_draft_append_chain(&chain, (int32_t)h - 1, &any, 1, &err), err);
        score(&f, &chain);
    }
    const float *row;
    assert_int_equal(live_session_logits(f.s, (int32_t)want->shape[0] - 1, &row, &err), DSC_EUSAGE);
    dsc_draft_fini(&chain);
    fixture_close(&f, false);
}

static void heads_are_those_of_torch(void **state)
{
    (void)state;
    fixture target;
    fixture_open(&target, "llama", NULL, NULL);
    check_eagle("llama_eagle", &target);
    check_eagle("llama_eagle_nobias", &target);
    check_eagle("llama_eagle_embed", &target);
    check_medusa("llama_medusa", &target);
    fixture_close(&target, true);
}

// EAGLE-3's features are not those of the other heads, so its target has a session of its own. The
// first head is a program's without a library, the second torch's, with norm_before_residual.
static void eagle3_is_that_of_the_oracles(void **state)
{
    (void)state;
    fixture target;
    fixture_open(&target, "llama", NULL, NULL);
    check_eagle("llama_eagle3", &target);
    check_eagle("llama_eagle3_norm", &target);
    fixture_close(&target, true);
}

// Beyond its trained length a text of a model with dynamic scaling depends on how it was cut.
static void dynamic_scaling_has_a_limit(void **state)
{
    (void)state;
    char path[512];
    dsc_error err;
    live_backend *b = open_device();
    live_weights *w;
    live_session *s;
    snprintf(path, sizeof path, "%s/llama_dynamic", folder);
    assert_ok(live_weights_load(&w, path, b, NULL, &err), err);
    assert_ok(live_session_new(&s, w, NULL, 64, NODES, &err), err);
    live_session_free(s);
    assert_int_equal(live_session_new(&s, w, NULL, 65, NODES, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "beyond which rope type dynamic is not supported"));
    live_weights_free(w);
    b->type->close(b);
}

SUITE(fixtures)
{
    static char standard[512];
    folder = source_path("tests/oracle/fixtures", standard, sizeof standard);
    device = chosen_device("cpu");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_those_of_transformers),
        cmocka_unit_test(gguf_files_are_those_of_transformers),
        cmocka_unit_test(heads_are_those_of_torch),
        cmocka_unit_test(eagle3_is_that_of_the_oracles),
        cmocka_unit_test(dynamic_scaling_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
