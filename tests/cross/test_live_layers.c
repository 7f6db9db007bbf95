// SPDX-License-Identifier: Apache-2.0
// Layers of a target as its draft model: the lists that are read, the memory that is shared, and
// logits equal to the bit to those of a checkpoint that contains these layers only, for every
// architecture of tests/oracle/fixtures.
#include "tests/cross/device.h"
#include "tests/kept_layers.h"
#include "tests/scratch.h"

#include "live/model/kept_layers.h"
#include "live/session/session.h"

enum { TOKENS = 12, ROOM = 32, NODES = 8 };
static const char *device;

static char folder[] = "/tmp/dsc-layers-XXXXXX";

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/dsc-layers-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return remove_tree(folder);
}

// --- lists ---------------------------------------------------------------------------------------

static void assert_list(const char *text, int64_t layers, const char *want)
{
    int64_t *list;
    size_t count, at = 0;
    char got[200] = "";
    dsc_error err;
    assert_ok(live_layers_parse(&list, &count, text, layers, &err), err);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%d", i ? " " : "", (int)list[i]);
    free(list);
    assert_string_equal(got, want);
}

static void assert_refused(const char *text, int64_t layers, const char *part)
{
    int64_t *list;
    size_t count;
    dsc_error err = {0};
    assert_int_equal(live_layers_parse(&list, &count, text, layers, &err), DSC_EUSAGE);
    assert_null(list);
    if (!strstr(err.message, part))
        fail_msg("'%s': %s", text, err.message);
}

static void lists_are_read(void **state)
{
    (void)state;
    assert_list("0:3", 4, "0 1 2");
    assert_list("0:4", 4, "0 1 2 3");
    assert_list(":2", 4, "0 1");
    assert_list("2:", 4, "2 3");
    assert_list(":", 2, "0 1");
    assert_list("3", 4, "3");
    assert_list("0:2,6:8", 8, "0 1 6 7");
    assert_list("0,2,5:", 7, "0 2 5 6");
    assert_refused("0:5", 4, "outside of the target");
    assert_refused("4", 4, "outside of the target");
    assert_refused("99999999999999999999:", 4, "outside of the target");
    assert_refused("0:99999999999999999999", 4, "outside of the target");
    assert_refused("2:2", 4, "no layer");
    assert_refused("3:1", 4, "no layer");
    assert_refused("1:3,2:4", 4, "ascend");
    assert_refused("2,1", 4, "ascend");
    assert_refused("", 4, "FIRST:LAST");
    assert_refused("-1:2", 4, "FIRST:LAST");
    assert_refused("0:2,", 4, "FIRST:LAST");
    assert_refused("0:2:1", 4, "FIRST:LAST");
    assert_refused("0 :2", 4, "FIRST:LAST");
}

// --- logits --------------------------------------------------------------------------------------

static int keep_row(void *user, int64_t i, const float *logits, dsc_error *err)
{
    float *rows = user;
    const size_t vocab = (size_t)rows[0];
    (void)err;
    memcpy(rows + 1 + (size_t)i * vocab, logits, vocab * sizeof *rows);
    return DSC_OK;
}

// The logits of a text: [0] is the vocabulary size.
static float *logits_of(const live_weights *w)
{
    const int64_t vocab = w->config.vocab;
    const live_sampling greedy = {0, 0, 1};
    int32_t token[TOKENS];
    live_session *s;
    dsc_error err;
    float *rows = calloc(1 + (size_t)(TOKENS * vocab), sizeof *rows);
    assert_non_null(rows);
    rows[0] = (float)vocab;
    for (int i = 0; i < TOKENS; i++)
        token[i] = (int32_t)((7 * i + i * i) % vocab);
    assert_ok(live_session_new(&s, w, NULL, ROOM, NODES, &err), err);
    assert_ok(live_session_begin(s, (dsc_token_view){token, 1}, TOKENS, &greedy, &err), err);
    assert_ok(live_session_replay(s, (dsc_token_view){token, 1},
                                  (dsc_token_view){token + 1, TOKENS - 1}, keep_row, rows, &err),
              err);
    live_session_free(s);
    return rows;
}

// The arrays of a layer are the target's.
static void assert_shared(const live_weights *part, const live_weights *w, const int64_t *layer,
                          size_t count)
{
    assert_true(part->bytes == 0 && part->file_bytes == 0);
    assert_int_equal(part->config.layers, count);
    assert_ptr_equal(part->embed.data, w->embed.data);
    assert_ptr_equal(part->head.data, w->head.data);
    assert_ptr_equal(part->norm, w->norm);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(part->layer[i].qkv.data, w->layer[layer[i]].qkv.data);
        assert_ptr_equal(part->layer[i].down.data, w->layer[layer[i]].down.data);
    }
    assert_string_not_equal(part->fingerprint, w->fingerprint);
}

// `from`: the folder of the target `w`.
static void check_subset(const char *from, const live_weights *w, const int64_t *layer,
                         size_t count)
{
    live_weights *part, *alone;
    dsc_error err;
    assert_ok(kept_layers_write(from, folder, layer, count, &err), err);
    assert_ok(live_weights_layers(&part, w, layer, count, w->backend, &err), err);
    assert_ok(live_weights_load(&alone, folder, w->backend, NULL, &err), err);
    assert_shared(part, w, layer, count);
    float *got = logits_of(part), *want = logits_of(alone), *all = logits_of(w);
    const size_t vocab = (size_t)w->config.vocab, bytes = TOKENS * vocab * sizeof *got;
    assert_true(w->config.vocab == alone->config.vocab && want[1] != want[vocab]);
    assert_memory_equal(got + 1, want + 1, bytes - vocab * sizeof *got);
    if ((int64_t)count < w->config.layers)
        assert_memory_not_equal(got + 1, all + 1, bytes - vocab * sizeof *got);
    else
        assert_memory_equal(got + 1, all + 1, bytes - vocab * sizeof *got);
    free(got);
    free(want);
    free(all);
    live_weights_free(alone);
    live_weights_free(part);
}

static void check_folder(const char *from)
{
    static const int64_t list[][4] = {{0}, {1}, {0, 1}, {0, 2}, {1, 3}, {0, 1, 2, 3}};
    static const size_t counts[] = {1, 1, 2, 2, 2, 4};
    live_backend *b;
    live_weights *w;
    dsc_error err;
    assert_ok(live_backend_open(&b, device, 1, false, &err), err);
    assert_ok(live_weights_load(&w, from, b, NULL, &err), err);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (list[i][counts[i] - 1] < w->config.layers)
            check_subset(from, w, list[i], counts[i]);
    live_weights_free(w);
    b->type->close(b);
}

static void logits_are_those_of_a_checkpoint_with_these_layers(void **state)
{
    static const char *const fixtures[] = {
        "llama", "llama3", "llama_fp16", "llama_bf16",         "mistral", "mistral_window", "qwen2",
        "qwen3", "gpt2",   "gpt_neox",   "gpt_neox_sequential"};
    char room[512], path[600];
    (void)state;
    const char *top = source_path("tests/oracle/fixtures", room, sizeof room);
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        snprintf(path, sizeof path, "%s/%s", top, fixtures[i]);
        check_folder(path);
    }
    check_folder(source_path("live/demo/target", room, sizeof room));
}

// The fingerprint depends on the layers, not on how they are written.
static void layers_have_a_fingerprint(void **state)
{
    live_backend *b;
    live_weights *w, *part[3];
    char room[512];
    dsc_error err;
    static const int64_t list[3][2] = {{0, 1}, {0, 1}, {0, 2}};
    (void)state;
    assert_ok(live_backend_open(&b, device, 1, false, &err), err);
    assert_ok(
        live_weights_load(&w, source_path("live/demo/target", room, sizeof room), b, NULL, &err),
        err);
    for (int i = 0; i < 3; i++)
        assert_ok(live_weights_layers(&part[i], w, list[i], 2, b, &err), err);
    assert_string_equal(part[0]->fingerprint, part[1]->fingerprint);
    assert_string_not_equal(part[0]->fingerprint, part[2]->fingerprint);
    for (int i = 0; i < 3; i++)
        live_weights_free(part[i]);
    live_weights_free(w);
    b->type->close(b);
}

SUITE(live_layers)
{
    device = chosen_device("cpu");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test_setup_teardown(logits_are_those_of_a_checkpoint_with_these_layers, setup,
                                        teardown),
        cmocka_unit_test(layers_have_a_fingerprint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
