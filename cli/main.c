// SPDX-License-Identifier: Apache-2.0
// draftscope: the command table, and what else people type for these commands.
#include "cli/simulate.h"

#include <string.h>

// Options that several commands share; the name is only part of a message.
static const cli_command shared = {
    .name = "sim, sweep and tune",
    .option = cli_workload_options,
    .options = CLI_WORKLOAD_OPTIONS,
};
static const cli_command *const known[] = {&cli_advise, &cli_trace,  &cli_sim,      &cli_sweep,
                                           &cli_merge,  &cli_tune,   &cli_theory,   &cli_serve,
                                           &cli_plot,   &cli_report, &cli_validate, &cli_live,
                                           &cli_list,   &shared,     NULL};
enum { COMMANDS = sizeof known / sizeof *known - 2 };

// A word that stands for a command, or for a command and the first of its arguments.
static const struct {
    const char *word, *command, *argument;
} synonyms[] = {
    {"replay", "sim", NULL},     {"simulate", "sim", NULL},  {"compare", "sweep", NULL},
    {"recommend", "tune", NULL}, {"optimize", "tune", NULL}, {"convert", "trace", "import"},
    {"info", "trace", "info"},   {"stats", "trace", "info"},
};
enum { SYNONYMS = sizeof synonyms / sizeof *synonyms };

static void print_help(void)
{
    puts("Usage: draftscope COMMAND [ARGUMENTS]\n\n"
         "An offline simulator and analysis toolkit for speculative decoding. It replays recorded "
         "LLM\n"
         "outputs and computes, for any drafting method and setting, how many draft tokens would "
         "be\n"
         "accepted and what speedup that gives under a cost model.\n\n"
         "Commands");
    for (size_t c = 0; c < COMMANDS; c++)
        printf("  %-10s%s\n", known[c]->name, known[c]->summary);
    puts("\nSynonyms");
    for (size_t s = 0; s < SYNONYMS; s++)
        printf("  %-10s%s%s%s\n", synonyms[s].word, synonyms[s].command,
               synonyms[s].argument ? " " : "", synonyms[s].argument ? synonyms[s].argument : "");
    puts("\n  draftscope help COMMAND     options of a command, also draftscope COMMAND --help\n"
         "  draftscope COMMAND --json-schema   JSON Schema of what --json prints\n"
         "  draftscope version          also --version and -V\n\n"
         "Exit codes: 0 success; 1 a check failed or a result could not be written; 2 wrong usage; "
         "3 a\n"
         "missing feature or program; 4 an invalid input file; 130 or 143 interrupted (finished "
         "results are\n"
         "on disk).");
}

// Without a command: the way from logs to a verdict.
static void print_guide(void)
{
    puts("draftscope computes from recorded outputs what speculative decoding would save.\n\n"
         "From your logs to a verdict in one command; a pass takes 20 ms and 0.2 ms per token "
         "here:\n"
         "  draftscope advise answers.jsonl --tokenizer tokenizer.json --cost "
         "linear:0.020,0.0002\n\n"
         "Step by step: import them, look at them, price one setting, find the best one:\n"
         "  draftscope trace import --tokenizer tokenizer.json answers.jsonl -o answers.dst\n"
         "  draftscope trace info answers.dst\n"
         "  draftscope sim answers.dst --method ngram --cost linear:0.020,0.0002\n"
         "  draftscope tune answers.dst --method ngram,suffix --num-speculative-tokens 2:16:2 \\\n"
         "      --cost linear:0.020,0.0002\n\n"
         "  draftscope --help           all commands\n"
         "  draftscope COMMAND --help   options of a command\n"
         "  man draftscope-tutorial     first steps with data that come with the program");
}

static int unknown_command(const char *word, dsc_error *err)
{
    const char *names[COMMANDS + SYNONYMS];
    for (size_t c = 0; c < COMMANDS; c++)
        names[c] = known[c]->name;
    for (size_t s = 0; s < SYNONYMS; s++)
        names[COMMANDS + s] = synonyms[s].word;
    return dsc_unknown_name("command", word, names, COMMANDS + SYNONYMS, "see: draftscope --help",
                            err);
}

static int run_command(const char *name, int argc, char **argv, dsc_error *err)
{
    for (size_t c = 0; c < COMMANDS; c++)
        if (strcmp(name, known[c]->name) == 0)
            return cli_command_run(known[c], argc, argv, err);
    return unknown_command(name, err);
}

// argv[0] is the command or a synonym of it, which becomes its argument where it has one.
static int run_word(int argc, char **argv, dsc_error *err)
{
    for (size_t s = 0; s < SYNONYMS; s++) {
        if (strcmp(argv[0], synonyms[s].word) != 0)
            continue;
        if (!synonyms[s].argument)
            return run_command(synonyms[s].command, argc - 1, argv + 1, err);
        char argument[16];
        snprintf(argument, sizeof argument, "%s", synonyms[s].argument);
        argv[0] = argument;
        return run_command(synonyms[s].command, argc, argv, err);
    }
    return run_command(argv[0], argc - 1, argv + 1, err);
}

// help COMMAND...: the arguments of the command line with --help in place of "help" at the end.
static int help(int argc, char **argv, dsc_error *err)
{
    char option[] = "--help";
    for (int a = 0; a + 1 < argc; a++)
        argv[a] = argv[a + 1];
    argv[argc - 1] = option;
    return run_word(argc, argv, err);
}

static int dispatch(int argc, char **argv, dsc_error *err)
{
    if (argc < 2) {
        print_guide();
        return DSC_OK;
    }
    if (dsc_is_listed("help|--help|-h", argv[1], strlen(argv[1]))) {
        if (argc > 2 && argv[2][0] != '-')
            return help(argc - 1, argv + 1, err);
        print_help();
        return DSC_OK;
    }
    if (dsc_is_listed("version|--version|-V", argv[1], strlen(argv[1]))) {
        puts("draftscope " PACKAGE_VERSION);
        return DSC_OK;
    }
    return run_word(argc - 1, argv + 1, err);
}

int main(int argc, char **argv)
{
    return cli_main("draftscope", known, dispatch, argc, argv);
}
