// SPDX-License-Identifier: Apache-2.0
// Reads AlpacaEval's outputs: a JSON list (or lines) of {"instruction", "input", "output",
// "generator"}. The prompt is the instruction followed by a line end and the input, if there is
// one. No chat template is added, because the file does not record which one the model received.
#include "traces/import/import_record.h"

static int probe(const json_t *line)
{
    // ("output" alone is more likely a line of the jsonl format that lacks its prompt.)
    return json_object_get(line, "instruction") ? 2 + 2 * (json_object_get(line, "output") != NULL)
                                                : 0;
}

int dsc_import_alpaca_prompt(const json_t *line, dsc_import_record *out, dsc_error *err)
{
    dsc_import_text *prompt = &out->prompt;
    dsc_text_view instruction, input;
    const json_t *further = json_object_get(line, "input");
    int rc =
        dsc_import_string(&instruction, json_object_get(line, "instruction"), err, "instruction");
    prompt->text = instruction;
    if (rc || !further || json_is_null(further))
        return rc;
    rc = dsc_import_string(&input, further, err, "input");
    if (rc || input.length == 0)
        return rc;
    rc = dsc_import_put(prompt, "", instruction, err);
    return rc ? rc : dsc_import_put(prompt, "\n", input, err);
}

static int read_line(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                     dsc_error *err)
{
    static const char *const kept[] = {"generator", "dataset", NULL};
    (void)options;
    int rc = dsc_import_alpaca_prompt(line, out, err);
    if (!rc)
        rc = dsc_import_string(&out->output.text, json_object_get(line, "output"), err, "output");
    if (!rc)
        rc = dsc_import_keep(out, line, kept, err);
    out->eos = DSC_IMPORT_EOS_IF_KNOWN;
    return rc;
}

const dsc_import_driver dsc_import_alpaca = {
    .name = "alpaca",
    .summary = "AlpacaEval's outputs: a JSON list of instruction, output, generator",
    .needs = "instruction output",
    .documents = true,
    .probe = probe,
    .read = read_line,
};
