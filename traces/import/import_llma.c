// SPDX-License-Identifier: Apache-2.0
// Reads the traces of LLMA (Yang et al. 2023, "Inference with Reference";
// github.com/microsoft/LMOps, llma/data): JSON lines {"query", "docs": [...], "result": {"text",
// "finish_reason", ...}}.
//
// The prompt is built as in their decode.py; the documents are the references. Their code uses only
// the first 768 tokens of a document (semantics "code"), which the paper does not mention
// ("paper"). Check: rag.jsonl with the LLaMA tokenizer has 90363 prompt and 11123 output tokens in
// 100 requests, the 903.6 and 110.2 (+ 1 EOS token) per request of their Table 1.
#include "traces/import/import_record.h"

#include <string.h>

enum { DOCUMENT_TOKENS = 768 };

static int probe(const json_t *line)
{
    return 2 * (json_object_get(line, "query") != NULL) +
           2 * (json_object_get(line, "docs") != NULL) +
           2 * (json_object_get(line, "result") != NULL);
}

static int read_documents(const json_t *docs, dsc_import_record *out, dsc_error *err)
{
    if (!json_is_array(docs))
        return dsc_import_wrong_type(docs, "an array of strings", err, "docs");
    for (size_t i = 0; i < json_array_size(docs); i++) {
        dsc_import_text *reference;
        int rc = dsc_import_add_reference(out, &reference, err);
        if (!rc)
            rc = dsc_import_string(&reference->text, json_array_get(docs, i), err, "docs[%zu]", i);
        if (rc)
            return rc;
    }
    return DSC_OK;
}

static int build_prompt(dsc_import_record *out, dsc_text_view query, dsc_error *err)
{
    const dsc_text_view nothing = {"", 0};
    int rc = dsc_import_put(&out->prompt, "docs:\n", nothing, err);
    for (size_t i = 0; !rc && i < out->references; i++)
        rc = dsc_import_put(&out->prompt, i ? "\n" : "", out->reference[i].text, err);
    if (!rc)
        rc = dsc_import_put(&out->prompt, "\nquery: ", query, err);
    return rc ? rc : dsc_import_put(&out->prompt, "\nanswer:", nothing, err);
}

int dsc_import_llma_prompt(const json_t *line, dsc_import_record *out, dsc_error *err)
{
    dsc_text_view query;
    int rc = dsc_import_string(&query, json_object_get(line, "query"), err, "query");
    if (!rc)
        rc = read_documents(json_object_get(line, "docs"), out, err);
    return rc ? rc : build_prompt(out, query, err);
}

static int read_result(const json_t *result, dsc_import_record *out, dsc_error *err)
{
    static const char *const kept[] = {"finish_reason", NULL};
    if (!json_is_object(result))
        return dsc_import_wrong_type(result, "an object", err, "result");
    int rc =
        dsc_import_string(&out->output.text, json_object_get(result, "text"), err, "result.text");
    return rc || !json_object_get(result, *kept) ? rc : dsc_import_keep(out, result, kept, err);
}

static int read_line(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                     dsc_error *err)
{
    int rc = dsc_import_llma_prompt(line, out, err);
    if (!rc)
        rc = read_result(json_object_get(line, "result"), out, err);
    const json_t *id = json_object_get(line, "id");
    if (!rc && (json_is_string(id) || json_is_integer(id)))
        rc = dsc_import_id(out, id, err);
    out->eos = DSC_IMPORT_EOS_REQUIRED;
    if (strcmp(options->semantics, "code") == 0)
        out->reference_limit = DOCUMENT_TOKENS;
    return rc;
}

const dsc_import_driver dsc_import_llma = {
    .name = "llma",
    .summary = "LLMA's JSON lines: query, docs[], result.text",
    .needs = "query docs result",
    .probe = probe,
    .read = read_line,
};
