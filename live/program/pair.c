// SPDX-License-Identifier: Apache-2.0
// Opens the models of a live command: reads their configurations, checks that they fit together,
// chooses devices, loads weights and creates sessions.
#include "live/program/pair.h"

#include "base/file.h"
#include "cli/cli.h"
#include "cli/guard.h"
#include "live/model/gguf.h"
#include "live/model/kept_layers.h"
#include "live/model/vocabulary.h"
#include "live/session/replay_draft.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// clang-format off
const dsc_option live_pair_options[LIVE_PAIR_OPTIONS] = {
    [LIVE_PAIR_TARGET] = {.name = "target", .kind = DSC_OPTION_TEXT, .metavar = "DIR|FILE.gguf",
     .help = "target model: a Hugging Face folder with config.json and *.safetensors, or a GGUF "
             "file"},
    [LIVE_PAIR_DRAFT] = {.name = "draft", .kind = DSC_OPTION_TEXT, .metavar = "DIR",
     .help = "draft model: a Hugging Face folder or GGUF file of a model, or a folder of an EAGLE "
             "head or Medusa heads trained for the target"},
    [LIVE_PAIR_DRAFT_LAYERS] = {.name = "draft-layers", .kind = DSC_OPTION_TEXT,
     .metavar = "FIRST:LAST", .help = "use these layers of the target instead of --draft, followed "
     "by its final norm and output matrix (self-speculation); 0:24 are layers 0 to 23, "
     "0:4,20:24 leave out those between"},
    [LIVE_PAIR_MIDDLE] = {.name = "middle", .kind = DSC_OPTION_TEXT, .metavar = "DIR",
     .help = "middle model of a cascade, between draft and target"},
    [LIVE_PAIR_SHAPE] = {.name = "shape", .kind = DSC_OPTION_TEXT, .metavar = "PRESET|config.json",
     .help = "use random weights of this shape instead of --target, for timing (see: draftscope "
             "live list)"},
    [LIVE_PAIR_DRAFT_SHAPE] = {.name = "draft-shape", .kind = DSC_OPTION_TEXT,
     .metavar = "PRESET|config.json",
     .help = "use random weights of this shape instead of --draft; may be the config.json of an "
             "EAGLE head"},
    [LIVE_PAIR_RANDOM_WEIGHTS] = {.name = "random-weights", .kind = DSC_OPTION_INT,
     .metavar = "SEED", .min = 0, .max = INT64_MAX,
     .help = "seed of the random weights of --shape and --draft-shape"},
    [LIVE_PAIR_DTYPE] = {.name = "dtype", .kind = DSC_OPTION_CHOICE, .choices = "bf16|f16|f32",
     .initial = "bf16", .help = "dtype of random weights; if given, weights from a folder are "
     "rounded to it, else they keep theirs"},
    [LIVE_PAIR_DEVICE] = {.name = "device", .kind = DSC_OPTION_TEXT,
     .metavar = "auto|cpu|cuda|cuda:N", .initial = "auto",
     .help = "device of the models; auto is the first GPU, or the CPU if there is none; "
             "cuda:overlap=0, graphs=0, prefetch=MB, carveout=PERCENT switch how a GPU works"},
    [LIVE_PAIR_DRAFT_DEVICE] = {.name = "draft-device", .kind = DSC_OPTION_TEXT,
     .metavar = "auto|cpu|cuda|cuda:N", .help = "device of the draft and middle models "
     "(default: --device)"},
    [LIVE_PAIR_THREADS] = CLI_OPTION_THREADS,
    [LIVE_PAIR_BATCH_INVARIANT] = {.name = "batch-invariant", .kind = DSC_OPTION_FLAG,
     .help = "make results independent of the number of tokens in a pass (bitwise); slower"},
    [LIVE_PAIR_TEMPERATURE] = {.name = "temperature", .kind = DSC_OPTION_REAL, .metavar = "T",
     .initial = "0", .least = 0, .most = 1000,
     .help = "sampling temperature of target and draft model; 0: argmax"},
    [LIVE_PAIR_TOP_K] = {.name = "top-k", .kind = DSC_OPTION_INT, .metavar = "K", .initial = "0",
     .min = 0, .max = 1 << 24, .help = "sample from the K most probable tokens; 0: from all"},
    [LIVE_PAIR_TOP_P] = {.name = "top-p", .kind = DSC_OPTION_REAL, .metavar = "P", .initial = "1",
     .least = 1e-9, .most = 1,
     .help = "sample from the smallest set of most probable tokens with total probability >= P"},
    [LIVE_PAIR_CONTEXT] = {.name = "context", .kind = DSC_OPTION_INT, .metavar = "N",
     .initial = "0", .min = 0, .max = 1 << 24,
     .help = "maximum tokens of prompt and output; 0: as many as needed"},
};
// clang-format on

// The value of an option; NULL also where it is empty, which names nothing.
static const char *text_of(const dsc_option_value *value)
{
    return value->text && *value->text ? value->text : NULL;
}

live_want live_want_of(const dsc_drafter_type *method)
{
    return (live_want){.draft = method->needs_draft,
                       .middle = method->needs_middle,
                       .copy = method->sees_output && !method->view,
                       .apart = method->parallel};
}

static bool is_given(const live_config *c)
{
    return c->vocab > 0;
}

bool live_pair_has_draft(const dsc_option_value *value)
{
    return text_of(&value[LIVE_PAIR_DRAFT]) || text_of(&value[LIVE_PAIR_DRAFT_SHAPE]) ||
           text_of(&value[LIVE_PAIR_DRAFT_LAYERS]);
}

void live_pair_default_tree(const dsc_option_value *value, const dsc_drafter_type *method,
                            dsc_option_value *parameter)
{
    const char *folder = text_of(&value[LIVE_PAIR_DRAFT]);
    live_config c = {0};
    dsc_error later; // live_pair_read reports a folder that cannot be read
    const dsc_option *tree = dsc_option_find(method->option, method->option_count, "tree");
    if (!tree || parameter[tree - method->option].given || !folder ||
        live_config_read(&c, folder, &later) || c.family != LIVE_MEDUSA)
        return;
    parameter[tree - method->option].text = "medusa";
    fprintf(stderr,
            "draftscope: note: using --tree medusa for Medusa heads (other draft models: %s)\n",
            tree->initial);
}

static bool is_named(const live_named *n)
{
    return n->folder || n->shape || n->layers;
}

// --- what is asked for ---------------------------------------------------------------------------

// --draft-layers takes the place of --draft, on the target's device.
static int read_layer_names(live_pair *p, dsc_error *err)
{
    const dsc_option_value *value = p->option;
    live_named *draft = &p->name[LIVE_DRAFT];
    const char *other = value[LIVE_PAIR_DRAFT_DEVICE].text;
    draft->layers = text_of(&value[LIVE_PAIR_DRAFT_LAYERS]);
    if (!draft->layers)
        return DSC_OK;
    if (draft->folder || draft->shape)
        return dsc_fail(err, DSC_EUSAGE, "--%s and --draft-layers cannot be combined",
                        draft->folder ? "draft" : "draft-shape");
    return !other || !strcmp(other, value[LIVE_PAIR_DEVICE].text)
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE,
                          "--draft-device and --draft-layers cannot be combined: the layers are on "
                          "the target's device");
}

// Reads the names of the models; drops those that are not needed and reports missing ones.
static int read_names(live_pair *p, dsc_error *err)
{
    const dsc_option_value *value = p->option;
    const dsc_option *option = live_pair_options;
    const struct {
        int folder, shape; // 0: none, because --target is no shape
        bool wanted;
        const char *expected;
    } side[LIVE_SIDES] = {
        {LIVE_PAIR_TARGET, LIVE_PAIR_SHAPE, true,
         "--target DIR (or --shape PRESET --random-weights SEED)"},
        {LIVE_PAIR_DRAFT, LIVE_PAIR_DRAFT_SHAPE, p->want.draft,
         "--draft DIR (or --draft-shape PRESET or --draft-layers FIRST:LAST)"},
        {LIVE_PAIR_MIDDLE, 0, p->want.middle, "--middle DIR"},
    };
    live_named *name = p->name;
    for (int s = 0; s < LIVE_SIDES; s++) {
        const int shape = side[s].shape;
        name[s] = (live_named){.folder = text_of(&value[side[s].folder]),
                               .shape = shape ? text_of(&value[shape]) : NULL};
        if (name[s].folder && name[s].shape)
            return dsc_fail(err, DSC_EUSAGE, "--%s and --%s cannot be combined",
                            option[side[s].folder].name, option[shape].name);
        if (name[s].shape && !value[LIVE_PAIR_RANDOM_WEIGHTS].given)
            return dsc_fail(err, DSC_EUSAGE,
                            "--%s requires --random-weights SEED, because a shape has no weights",
                            option[shape].name);
    }
    int rc = read_layer_names(p, err);
    if (rc)
        return rc;
    if (value[LIVE_PAIR_RANDOM_WEIGHTS].given && !name[LIVE_TARGET].shape &&
        !name[LIVE_DRAFT].shape)
        return dsc_fail(err, DSC_EUSAGE, "--%s requires --shape or --draft-shape",
                        option[LIVE_PAIR_RANDOM_WEIGHTS].name);
    if (value[LIVE_PAIR_DRAFT_DEVICE].given && !is_named(&name[LIVE_DRAFT]) &&
        !is_named(&name[LIVE_MIDDLE]))
        return dsc_fail(err, DSC_EUSAGE,
                        "--draft-device requires --draft, --draft-shape or "
                        "--middle");
    for (int s = 0; s < LIVE_SIDES; s++)
        if (!side[s].wanted)
            name[s] = (live_named){0};
        else if (!is_named(&name[s]))
            return dsc_fail(err, DSC_EUSAGE, "%s is required", side[s].expected);
    return DSC_OK;
}

static int check_devices(const dsc_option_value *value, dsc_error *err)
{
    int rc = DSC_OK;
    for (int o = LIVE_PAIR_DEVICE; o <= LIVE_PAIR_DRAFT_DEVICE && !rc; o++)
        if (value[o].text && (rc = live_backend_check(value[o].text, err)))
            dsc_error_prefix(err, rc, "--%s", live_pair_options[o].name);
    return rc;
}

// Prints a note on stderr for each option that this call makes no use of.
static void note_unused(const live_pair *p)
{
    static const struct {
        int option;
        live_side side;
    } of_model[] = {{LIVE_PAIR_DRAFT, LIVE_DRAFT},
                    {LIVE_PAIR_DRAFT_SHAPE, LIVE_DRAFT},
                    {LIVE_PAIR_DRAFT_LAYERS, LIVE_DRAFT},
                    {LIVE_PAIR_MIDDLE, LIVE_MIDDLE}};
    for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++)
        if (p->option[of_model[i].option].given && !is_named(&p->name[of_model[i].side]))
            fprintf(stderr, "draftscope: note: --%s is not used: the method needs no such model\n",
                    live_pair_options[of_model[i].option].name);
    for (int o = LIVE_PAIR_TOP_K; o <= LIVE_PAIR_TOP_P; o++)
        if (p->option[o].given && p->option[LIVE_PAIR_TEMPERATURE].real == 0)
            fprintf(stderr, "draftscope: note: --%s is not used at --temperature 0\n",
                    live_pair_options[o].name);
}

// The configuration of the layers that --draft-layers keeps.
static int read_layers(live_pair *p, dsc_error *err)
{
    const char *text = p->name[LIVE_DRAFT].layers;
    const live_config *target = &p->config[LIVE_TARGET];
    int rc = live_layers_parse(&p->kept, &p->kept_count, text, target->layers, err);
    if (rc)
        return dsc_error_prefix(err, rc, "--draft-layers");
    p->config[LIVE_DRAFT] = *target;
    live_config_keep(&p->config[LIVE_DRAFT], p->kept, p->kept_count);
    return DSC_OK;
}

// Whether this is a name such as "HuggingFaceTB/SmolLM2-135M", of plain characters.
static bool is_hub_id(const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    const size_t owner = strspn(text, plain), model = text[owner] ? owner + 1 : owner;
    const size_t rest = strspn(text + model, plain);
    return owner && *text != '.' && text[owner] == '/' && rest && text[model] != '.' &&
           !text[model + rest];
}

static int check_folder(const char *folder, int option, dsc_error *err)
{
    const char *name = live_pair_options[option].name, *model = strrchr(folder, '/');
    if (access(folder, F_OK) == 0 || !is_hub_id(folder))
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "--%s: there is no folder %s; if that is a model of the Hugging Face Hub, "
                    "download it (hf download %s --local-dir %s) and give --%s %s",
                    name, folder, folder, model + 1, name, model + 1);
}

static int read_configs(live_pair *p, dsc_error *err)
{
    static const int options[] = {LIVE_PAIR_TARGET, LIVE_PAIR_DRAFT, LIVE_PAIR_MIDDLE};
    const live_named *name = p->name;
    int rc = DSC_OK;
    for (int s = 0; s < LIVE_SIDES && !rc; s++)
        if (name[s].folder)
            rc = check_folder(name[s].folder, options[s], err);
    for (int s = 0; s < LIVE_SIDES && !rc; s++)
        if (name[s].folder)
            rc = live_config_read(&p->config[s], name[s].folder, err);
        else if (name[s].shape)
            rc = live_config_of_shape(&p->config[s], name[s].shape, err);
    for (int s = 0; s < LIVE_SIDES && !rc; s += LIVE_MIDDLE)
        if (is_given(&p->config[s]) && live_config_is_head(&p->config[s]))
            rc = dsc_fail(err, DSC_EUSAGE,
                          "%.200s contains draft heads; a complete model is required",
                          name[s].folder ? name[s].folder : name[s].shape);
    return !rc && name[LIVE_DRAFT].layers ? read_layers(p, err) : rc;
}

// --- vocabularies --------------------------------------------------------------------------------

static int load_tokenizer(dsc_tokenizer **out, const char *folder, dsc_error *err)
{
    dsc_buffer path = {0};
    *out = NULL;
    if (folder && dsc_gguf_is(folder))
        return live_gguf_has_tokenizer(folder) ? dsc_tokenizer_load(out, folder, err) : DSC_OK;
    int rc = folder ? dsc_tokenizer_path(&path, folder, err) : DSC_OK;
    const bool there = !rc && folder && access(path.data, F_OK) == 0;
    if (there)
        rc = dsc_check_regular(path.data, err);
    if (there && !rc)
        rc = dsc_tokenizer_load(out, path.data, err);
    dsc_buffer_fini(&path);
    return rc;
}

// Draft tokens are target tokens. If the models differ in padding, the smaller size counts.
static int match_vocabularies(live_pair *p, dsc_error *err)
{
    live_config *target = &p->config[LIVE_TARGET];
    int64_t least = target->vocab;
    int rc = load_tokenizer(&p->tokenizer, p->name[LIVE_TARGET].folder, err);
    for (int s = LIVE_DRAFT; s < LIVE_SIDES && !rc; s++) {
        const live_config *c = &p->config[s];
        dsc_tokenizer *own = NULL;
        if (!is_given(c) || live_config_is_head(c) || p->name[s].layers)
            continue;
        rc = load_tokenizer(&own, p->name[s].folder, err);
        if (!rc)
            rc = live_vocabulary_match(p->tokenizer, own, target->vocab, c->vocab, err);
        dsc_tokenizer_free(own);
        least = c->vocab < least ? c->vocab : least;
    }
    for (int s = 0; s < LIVE_SIDES; s++)
        if (p->config[s].vocab > least)
            p->config[s].vocab = least;
    return rc;
}

int live_pair_read(live_pair *p, const dsc_option_value *value, const live_want *want,
                   dsc_error *err)
{
    p->option = value;
    p->want = *want;
    int rc = check_devices(value, err);
    if (!rc)
        rc = read_names(p, err);
    if (!rc)
        rc = read_configs(p, err);
    if (!rc)
        rc = match_vocabularies(p, err);
    if (!rc && want->copy)
        p->config[LIVE_DRAFT] = p->config[LIVE_TARGET];
    p->context = value[LIVE_PAIR_CONTEXT].integer;
    return rc;
}

// --- devices and weights -------------------------------------------------------------------------

// Heads run on their target's backend. So do other models, unless they are assigned another device
// or run at the same time, which requires a stream of their own.
static int open_backends(live_pair *p, dsc_error *err)
{
    const dsc_option_value *value = p->option;
    const live_want *want = &p->want;
    const live_named *name = p->name;
    const char *device = value[LIVE_PAIR_DEVICE].text, *other = value[LIVE_PAIR_DRAFT_DEVICE].text;
    const bool invariant = value[LIVE_PAIR_BATCH_INVARIANT].given;
    const bool head =
        is_given(&p->config[LIVE_DRAFT]) && live_config_is_head(&p->config[LIVE_DRAFT]);
    const bool elsewhere = other && strcmp(other, device);
    const bool model = is_named(&name[LIVE_DRAFT]);
    p->all_threads = cli_threads(value[LIVE_PAIR_THREADS].integer);
    if (head && elsewhere)
        return dsc_fail(err, DSC_EUSAGE, "--draft-device: a head must run on its target's device");
    int rc = live_backend_open(&p->backend[LIVE_TARGET], device, p->all_threads, invariant, err);
    live_backend *target = p->backend[LIVE_TARGET], *drafts = target;
    if (!rc && model && !head && (want->apart || elsewhere))
        rc = live_backend_open(&drafts, elsewhere ? other : device, p->all_threads, invariant, err);
    if (rc)
        return rc;
    target->stop = drafts->stop = cli_signal;
    p->backend[LIVE_DRAFT] = model ? drafts : NULL;
    p->backend[LIVE_MIDDLE] = name[LIVE_MIDDLE].folder ? drafts : NULL;
    const bool halves = want->apart && drafts != target && p->all_threads > 1 &&
                        strcmp(drafts->type->name, target->type->name) == 0;
    p->threads[LIVE_DRAFT] = halves ? p->all_threads / 2 : p->all_threads;
    p->threads[LIVE_MIDDLE] = p->threads[LIVE_DRAFT];
    p->threads[LIVE_TARGET] = halves ? p->all_threads - p->all_threads / 2 : p->all_threads;
    drafts->threads = p->threads[LIVE_DRAFT];
    return DSC_OK;
}

// Drops the rows from `vocab` on.
static void cut_rows(live_weights *w, int64_t vocab)
{
    live_matrix *const of_tokens[] = {&w->embed, &w->head};
    const size_t count = w->config.family == LIVE_EAGLE3 ? 1 : 2; // its head's are draft tokens
    for (size_t i = 0; i < count; i++)
        if (of_tokens[i]->rows > vocab)
            of_tokens[i]->rows = vocab;
    for (int64_t h = 0; h < w->config.medusa_heads; h++)
        w->medusa[h].out.rows = vocab;
    w->config.vocab = vocab;
}

// Loads a model and adds the parts that are not run to the note.
static int load(live_pair *p, int side, dsc_buffer *note, dsc_error *err)
{
    static const dsc_dtype dtypes[] = {DSC_BF16, DSC_F16, DSC_F32};
    const live_named *name = &p->name[side];
    const dsc_option_value *value = p->option;
    const dsc_dtype *dtype = &dtypes[value[LIVE_PAIR_DTYPE].integer];
    char *unused = NULL;
    if (name->layers)
        return live_weights_layers(&p->weights[side], p->weights[LIVE_TARGET], p->kept,
                                   p->kept_count, p->backend[side], err);
    if (name->shape)
        return live_weights_random(&p->weights[side], &p->config[side], *dtype,
                                   (uint64_t)value[LIVE_PAIR_RANDOM_WEIGHTS].integer +
                                       (uint64_t)side,
                                   p->backend[side], err);
    int rc = live_weights_load_as(&p->weights[side], name->folder,
                                  value[LIVE_PAIR_DTYPE].given ? dtype : NULL, p->backend[side],
                                  &unused, err);
    if (!rc && unused && *unused)
        rc = dsc_buffer_printf(note, err, "%s%s: not run: %s", note->length ? "; " : "",
                               name->folder, unused);
    free(unused);
    return rc;
}

// --- a pair --------------------------------------------------------------------------------------

int live_pair_failed(const live_pair *p, int rc, dsc_error *err)
{
    bool gpu = false;
    for (int s = 0; s < LIVE_SIDES; s++)
        gpu |= p->backend[s] && !p->backend[s]->on_host;
    return rc == DSC_ENOMEM && gpu ? (err->status = DSC_EABSENT) : rc;
}

int live_pair_open(live_pair *p, dsc_error *err)
{
    const dsc_option_value *value = p->option;
    dsc_buffer note = {0};
    p->sampling = (live_sampling){value[LIVE_PAIR_TEMPERATURE].real, value[LIVE_PAIR_TOP_K].integer,
                                  value[LIVE_PAIR_TOP_P].real};
    int rc = open_backends(p, err);
    for (int s = 0; s < LIVE_SIDES && !rc; s++) {
        if (p->backend[s])
            rc = load(p, s, &note, err);
        if (!rc && p->weights[s] && p->weights[s]->config.vocab > p->config[s].vocab)
            cut_rows(p->weights[s], p->config[s].vocab);
    }
    if (!rc && p->want.copy) {
        p->backend[LIVE_DRAFT] = p->backend[LIVE_TARGET];
        p->weights[LIVE_DRAFT] = p->weights[LIVE_TARGET];
    }
    if (!rc && note.length)
        fprintf(stderr, "draftscope: note: %s\n", note.data);
    if (!rc)
        note_unused(p);
    dsc_buffer_fini(&note);
    return live_pair_failed(p, rc, err);
}

// Upper bound on the draft nodes in a model's passes. A chain that a model generates is no longer
// than the text; a copied one may be; the trace determines recorded ones.
static int64_t nodes_of(const live_pair *p, const dsc_config *config, int side, int64_t text)
{
    const dsc_drafter_type *d = config->drafter;
    if (d->view)
        return p->least_nodes;
    const int64_t width =
        side == LIVE_TARGET ? dsc_config_width(config) : dsc_config_draft_width(config);
    const bool written = d->needs_draft || d->sees_output;
    const bool chain = written && !d->branches && !d->width && !d->draft_width;
    return chain && width - 1 > text ? text : width - 1;
}

// A table of positions has no more rows, and the nodes of a draft may lie after the end of the
// text.
static int64_t most_positions(const live_config *c, int64_t nodes)
{
    return c->positions - (c->learned_positions ? nodes : 0);
}

int64_t live_pair_room(const live_pair *p, const dsc_config *config)
{
    int64_t room = INT64_MAX;
    for (int s = 0; s < LIVE_SIDES; s++) {
        const live_config *c = &p->config[s];
        if (is_given(c) && !live_config_is_head(c)) {
            const int64_t most = most_positions(c, nodes_of(p, config, s, c->positions));
            room = most < room ? most : room;
        }
    }
    return p->context && p->context < room ? p->context : room;
}

int live_pair_check_heads(const live_pair *p, const dsc_config *config, dsc_error *err)
{
    const live_config *c = &p->config[LIVE_DRAFT];
    const int64_t most = dsc_config_limit(config);
    if (config->drafter->needs_marginals && c->family != LIVE_MEDUSA)
        return dsc_fail(
            err, DSC_EUSAGE,
            "method %s needs a draft model that predicts all offsets in one pass, that "
            "is Medusa heads (--draft DIR); method draft-model drafts token after token",
            config->drafter->name);
    if (!is_given(c) || c->family != LIVE_MEDUSA)
        return DSC_OK;
    if (config->drafter->view && live_draft_record_passes(config, DSC_PASS_PER_TOKEN) != 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s: Medusa heads draft in one pass, which is --draft-passes 1",
                        config->drafter->name);
    if (config->drafter->view || most <= c->medusa_heads)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "method %s drafts up to %" PRId64 " tokens, but there are %" PRId64
                    " Medusa heads; choose a shorter draft",
                    config->drafter->name, most, c->medusa_heads);
}

// Whether a longer text is refused because the rotation would depend on how its passes are cut.
static bool is_limited_by_rope(const live_pair *p, int64_t room)
{
    bool limited = false;
    for (int s = 0; s < LIVE_SIDES; s++)
        limited |= p->config[s].rope == LIVE_ROPE_DYNAMIC && p->config[s].positions == room;
    return limited;
}

int live_pair_sessions(live_pair *p, const dsc_config *config, int64_t longest, dsc_error *err)
{
    const int64_t room = live_pair_room(p, config);
    const int64_t context = p->context ? p->context : longest;
    if (context > room || longest > room)
        return dsc_fail(
            err, DSC_EUSAGE, "a text of %" PRId64 " tokens exceeds the limit of %" PRId64 "%s",
            context > longest ? context : longest, room > 0 ? room : 0,
            is_limited_by_rope(p, room) ? ", beyond which rope type dynamic is not supported" : "");
    p->context = context;
    int rc = DSC_OK;
    for (int s = 0; s < LIVE_SIDES && !rc; s++) {
        const int64_t nodes = nodes_of(p, config, s, context);
        if (p->weights[s])
            rc = live_session_new(&p->session[s], p->weights[s],
                                  s == LIVE_TARGET ? NULL : p->session[LIVE_TARGET], context,
                                  nodes > p->least_nodes ? nodes : p->least_nodes, err);
    }
    return live_pair_failed(p, rc, err);
}

int live_pair_begin(live_pair *p, dsc_token_view prompt, int64_t limit, bool plain, dsc_error *err)
{
    dsc_model **const model[] = {&p->models.target, &p->models.draft, &p->models.middle};
    const int sides = plain ? LIVE_TARGET + 1 : LIVE_SIDES;
    int rc = DSC_OK;
    p->models = (dsc_models){0};
    for (int s = 0; s < sides && !rc; s++) {
        if (!p->session[s])
            continue;
        p->backend[s]->threads = plain ? p->all_threads : p->threads[s];
        rc = live_session_begin(p->session[s], prompt, limit, &p->sampling, err);
        *model[s] = live_session_model(p->session[s]);
    }
    return rc;
}

void live_pair_close(live_pair *p)
{
    for (int s = LIVE_SIDES - 1; s >= 0; s--)
        live_session_free(p->session[s]);
    for (int s = LIVE_SIDES - 1; s >= 0; s--)
        if (s == LIVE_TARGET || p->weights[s] != p->weights[LIVE_TARGET])
            live_weights_free(p->weights[s]);
    for (int s = LIVE_SIDES - 1; s >= 0; s--) {
        bool again = !p->backend[s];
        for (int o = 0; o < s; o++)
            again |= p->backend[o] == p->backend[s];
        if (!again)
            p->backend[s]->type->close(p->backend[s]);
    }
    free(p->kept);
    dsc_tokenizer_free(p->tokenizer);
    *p = (live_pair){0};
}

int live_pair_comments(dsc_table *t, const live_pair *p, dsc_error *err)
{
    const dsc_option_value *value = p->option;
    int rc = DSC_OK;
    for (int o = 0; o < LIVE_PAIR_OPTIONS && !rc; o++)
        if (value[o].given)
            rc = dsc_table_comment(t, live_pair_options[o].name,
                                   value[o].text ? value[o].text : "yes", err);
    if (!rc)
        rc = dsc_table_comment(t, "device_name", p->backend[LIVE_TARGET]->device, err);
    if (!rc && p->backend[LIVE_DRAFT] && p->backend[LIVE_DRAFT] != p->backend[LIVE_TARGET])
        rc = dsc_table_comment(t, "draft_device_name", p->backend[LIVE_DRAFT]->device, err);
    if (!rc)
        rc = dsc_table_comment(t, "dtype_stored",
                               dsc_dtype_name(p->weights[LIVE_TARGET]->config.dtype), err);
    return rc;
}
