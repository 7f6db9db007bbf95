// SPDX-License-Identifier: Apache-2.0
// What the commands share: the command record, help, comment lines, progress, the end of stdout.
#ifndef DSC_CLI_CLI_H
#define DSC_CLI_CLI_H

#include "base/option.h"
#include "base/table.h"
#include "sim/drafter.h"
#include "traces/trace/trace.h"

// A table of options with its heading in a help text.
typedef struct cli_help_section {
    const char *title;
    const dsc_option *table;
    size_t count;
} cli_help_section;

// Names with their meanings, and the heading; without one they continue those before them.
typedef struct cli_help_fields {
    const char *title;
    const dsc_column *field;
    size_t count;
} cli_help_fields;

#define CLI_FIELDS(title, list)                                                                    \
    {                                                                                              \
        title, list, sizeof(list) / sizeof *(list)                                                 \
    }

typedef void cli_fields_visit(void *user, const char *title, const dsc_column *field, size_t count);

enum { CLI_MAX_OPTIONS = 48, CLI_MAX_FIELDS = 4, CLI_MAX_METHODS = 32 };

// A table of options as that of a command.
#define CLI_OPTIONS(table) .option = table, .options = sizeof(table) / sizeof *(table)

// What a command is run with.
typedef struct cli_call {
    const struct cli_command *command;
    char **word; // [words] the arguments that are no options
    size_t words;
    dsc_option_value value[CLI_MAX_OPTIONS]; // [command->options]
    dsc_option_value more[CLI_MAX_OPTIONS];  // [command->more.count]
    dsc_option_uses uses;                    // every use of its own options
    // The methods of --method, with the values and all uses of their options.
    const dsc_drafter_type *method[CLI_MAX_METHODS];
    size_t methods;
    dsc_option_value list[CLI_MAX_METHODS][DSC_MAX_PARAMETERS];
    dsc_option_uses list_uses[CLI_MAX_METHODS];
    dsc_trace *trace; // of a command that opens it
    // The values of options of these names, where the command has them: --json, -o, --force,
    // --seed, --threads (at least 1) and --progress.
    bool json, force;
    bool quiet; // nothing is printed for a person: with --json, or for a command that runs this one
    const char *out;
    uint64_t seed;
    int threads;
    int64_t progress; // CLI_PROGRESS_AUTO, ...
} cli_call;

// How a command takes --method, which is its first option, and the options of methods.
typedef enum cli_method_kind {
    CLI_METHOD_NONE,  // not at all
    CLI_METHOD_ONE,   // one method; its options take single values
    CLI_METHOD_MAYBE, // one method or none; its options take single values
    CLI_METHOD_LISTS, // several, whose options take lists; also as --METHOD.OPTION if several
    CLI_METHOD_OWNED, // several, whose options take lists; also as --METHOD.OPTION
} cli_method_kind;

// A command is one of three: it parses its arguments itself (`run`), it has commands below it
// (`sub`), or cli_command_run prints its help, parses and checks its arguments (`execute`).
typedef struct cli_command {
    const char *name, *summary;
    // argv[0, argc) follows the command's name. Returns DSC_OK or DSC_E* with *err filled.
    int (*run)(int argc, char **argv, dsc_error *err);
    const dsc_option *option; // its own options, or NULL
    size_t options;
    const struct cli_command *const *sub; // NULL-terminated, or NULL
    const char *usage, *about;            // of the help
    const char *see;                      // `sub`: what the help of a command below it shows
    int (*execute)(const cli_call *call, dsc_error *err);
    cli_help_section more; // options of another table
    bool more_first;       // the help begins with these
    cli_method_kind methods;
    // Options that change no row of the result, NULL-terminated: the command line is recorded
    // without them (cli_canonical_command). NULL: it is recorded as it was given.
    const char *const *without;
    const char *const *repeated; // options whose every use counts, NULL-terminated, or NULL
    int least, most;             // number of arguments, most < 0: any
    const char *what;            // what the arguments must be, for the error message; NULL: none
    // Error message where -o is not given; NULL: it need not be. With --json, -o is "-" then.
    const char *needs_out;
    // The argument is one trace, as call->trace. With `methods` and without `what` there is at most
    // one, unopened.
    bool opens_trace;
    void (*more_help)(void);
    // Calls `visit` with further fields of the help, which follow `fields`; or NULL.
    void (*more_fields)(cli_fields_visit *visit, void *user);
    const char *const *structured; // fields of --json that are objects or lists of text, or NULL
    bool bounds;                   // columns NAME_low and NAME_high may follow the others
    bool optional_columns;         // a row may lack columns of every section of the help
    cli_help_fields fields[CLI_MAX_FIELDS]; // the help ends with these
    const void *form;                       // for `execute`, or NULL
    bool own_columns; // its result lacks the fields of sim's, which the help of methods lists
} cli_command;

extern const cli_command cli_advise, cli_trace, cli_sim, cli_sweep, cli_merge, cli_theory, cli_plot,
    cli_report, cli_validate, cli_list, cli_tune, cli_live, cli_serve;

// The body of main: runs `dispatch` on the arguments, prints an error on stderr, and returns the
// exit code. `program`: how a user calls it, "draftscope live"; `commands`: NULL-terminated.
int cli_main(const char *program, const cli_command *const *commands,
             int (*dispatch)(int argc, char **argv, dsc_error *err), int argc, char **argv);

// Parses the arguments after a command's name; cli_call_fini frees, also after an error.
int cli_call_init(cli_call *call, const cli_command *c, int argc, char **argv, dsc_error *err);
void cli_call_fini(cli_call *call);
// The value of the command's own option of this name; all zero: it has none.
const dsc_option_value *cli_call_value(const cli_call *call, const char *name);

// Runs a command on the arguments after its name.
int cli_command_run(const cli_command *c, int argc, char **argv, dsc_error *err);
// Runs the command that argv[0] names, of a NULL-terminated list. DSC_EUSAGE when `group` has none
// of that name, with the nearest one, or when argc is 0.
int cli_run_one(const cli_command *const *commands, const char *group, int argc, char **argv,
                dsc_error *err);

// dsc_options_parse; an unknown option is reported with the methods and commands that take it.
int cli_parse(const dsc_option_set *sets, size_t count, int argc, char **argv, size_t *words,
              dsc_error *err);
// DSC_EUSAGE when an output (--output, --timeline) is the file or folder of an argument or option,
// or a file of a trace that is one; compared by device and inode. Part of cli_parse.
int cli_check_outputs(const dsc_option_set *sets, size_t count, char **word, size_t words,
                      dsc_error *err);
// The same for a file whose name is made from that of --output.
int cli_check_written(const cli_call *call, const char *path, dsc_error *err);
// DSC_EUSAGE when an option is neither in the sets nor one of any method.
int cli_check_options(const dsc_option_set *sets, size_t count, int argc, char **argv,
                      dsc_error *err);
// Sets the commands and the name of this program, which the messages of cli_parse contain.
void cli_know_commands(const char *program, const cli_command *const *commands);

// The command line as a shell would take it, for comment lines and provenance.
const char *cli_command_line(void);
// Makes it what decides the result and nothing else: the command, its argument or NULL, the options
// that were given another value than their default, in the order of their tables, but for those
// named in command->without. Those in command->repeated have all of their values.
int cli_canonical_command(const cli_command *command, const char *argument,
                          const dsc_option_set *sets, size_t count, dsc_error *err);

bool cli_asks_help(int argc, char **argv); // --help or -h before any "--"

// "Usage: draftscope USAGE", summary, a heading and lines per option table.
void cli_print_help(const char *usage, const char *about, const cli_help_section *sections,
                    size_t count);

// Names and meanings, indented, wrapped. `title` NULL: no heading.
// --json-schema among the arguments, and what it prints: the JSON Schema of an object of --json.
// DSC_EUSAGE: the command has no --json.
bool cli_asks_schema(int argc, char **argv);
int cli_print_schema(const cli_command *c, dsc_error *err);
void cli_print_fields(const char *title, const dsc_column *field, size_t count);

// The positional arguments must be `least` to `most` (most < 0: any number).
int cli_check_positionals(size_t given, int least, int most, const char *what, dsc_error *err);

// The comment lines that every result begins with: program and version, command.
int cli_result_comments(dsc_table *t, dsc_error *err);
// These, then trace and its hash (NULL: none), seed, cost.
int cli_comments(dsc_table *t, const dsc_trace *trace, uint64_t seed, const char *cost,
                 dsc_error *err);

bool cli_ends_with(const char *text, const char *end);

// Flushes stdout; DSC_EIO when anything written to it was lost (a full disk).
int cli_finish_stdout(dsc_error *err);

// Options that several commands have.
// clang-format off
#define CLI_OPTION_PROGRESS                                                                        \
    {.name = "progress", .kind = DSC_OPTION_CHOICE, .choices = "auto|never|json",                  \
     .initial = "auto",                                                                            \
     .help = "progress on stderr: a bar on a terminal (auto), nothing (never) or JSON lines"}
// Sequences that run together; without what differs from command to command.
#define CLI_OPTION_BATCH                                                                           \
    .name = "batch-size", .synonyms = "batch", .kind = DSC_OPTION_INT, .min = 1, .list = true
#define CLI_OPTION_FORCE                                                                           \
    {.name = "force", .kind = DSC_OPTION_FLAG, .help = "overwrite an existing output"}
#define CLI_OPTION_SEED                                                                            \
    {.name = "seed", .kind = DSC_OPTION_INT, .metavar = "S", .initial = "0", .min = 0,             \
     .max = INT64_MAX, .help = "random seed"}
#define CLI_OPTION_THREADS                                                                         \
    {.name = "threads", .kind = DSC_OPTION_INT, .metavar = "T", .initial = "0", .min = 0,          \
     .max = 1024,                                                                                  \
     .help = "number of threads, 0: one per free processor; results do not depend on it"}
#define CLI_OPTION_BY                                                                              \
    {.name = "by", .kind = DSC_OPTION_TEXT, .metavar = "FIELD",                                    \
     .help = "report also the requests with each value of this metadata field, as in category"}
#define CLI_OPTION_COST                                                                            \
    {.name = "cost", .kind = DSC_OPTION_TEXT,                                                      \
     .metavar = "unit|linear:...|table:FILE|fit:TRACE|prometheus:...|bench:...|sps:FILE|"          \
                "roofline:...", .initial = "unit",                                                 \
     .help = "cost model of forward passes (see: draftscope list costs, and COST MODELS in "       \
             "draftscope-sim(1))"}
// clang-format on

int cli_threads(int64_t asked); // 0: the number of processors

// Writes the path of a file that is installed with this program: `relative` below the folder that
// is `up` levels above the program's file (1: its own folder). False: the file or its place is
// unknown.
bool cli_installed_at(char *path, size_t size, int up, const char *relative);

// --- progress -----------------------------------------------------------------------------------

enum { CLI_PROGRESS_AUTO, CLI_PROGRESS_NEVER, CLI_PROGRESS_JSON };
typedef struct cli_progress {
    int64_t mode;     // one of these
    const char *unit; // what is counted: "tokens", "bytes"
    bool bar;         // stderr is a terminal
    double started_s, shown_s;
    double share_before; // of the work, done by an earlier run that this one continues
} cli_progress;

// Begins to show the progress of a command; it can be interrupted from here on.
void cli_progress_init(cli_progress *p, int64_t mode, const char *unit);
// A progress callback (user: cli_progress): draws, and returns nonzero after a request to stop
// (cli/guard.h).
int cli_progress_step(void *user, int64_t done, int64_t total);
void cli_progress_end(cli_progress *p);
// Tells that `done` of `total` units were done by an interrupted command, which this one continues.
void cli_progress_resume(cli_progress *p, size_t done, size_t total, const char *units);

#endif
