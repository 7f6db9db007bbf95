// SPDX-License-Identifier: Apache-2.0
// Tokenizes outputs of several turns. The source does not record how a turn ended, so a turn ends
// with the EOS token when the source counted one token more than its text has. (In Spec-Bench, 1663
// of 1680 turns have one more; 13 have equal counts, because a length limit ended them.)
#include "traces/import/import_record.h"

#include <string.h>
#include <sys/stat.h>

int dsc_import_add_turn(dsc_import_record *r, size_t begin, size_t length, int64_t recorded,
                        bool may_end, dsc_error *err)
{
    int rc = dsc_resize(&r->turn, &r->turn_capacity, r->turns + 1, err);
    if (rc)
        return rc;
    r->turn[r->turns++] = (dsc_import_turn){begin, length, recorded, may_end};
    r->recorded_tokens = (r->recorded_tokens < 0 ? 0 : r->recorded_tokens) + recorded;
    return DSC_OK;
}

int dsc_import_turns_finish(dsc_import_record *r, dsc_encoder *encoder, int32_t eos, dsc_error *err)
{
    dsc_tokens *tokens = &r->output.tokens;
    if (!encoder)
        return dsc_fail(err, DSC_EUSAGE,
                        "text requires a tokenizer; add --tokenizer tokenizer.json");
    int rc = DSC_OK;
    for (size_t i = 0; i < r->turns && !rc; i++) {
        const dsc_import_turn *t = &r->turn[i];
        size_t before = tokens->count;
        rc = dsc_encode(encoder, r->output.text.bytes + t->begin, t->length, false, tokens, err);
        if (!rc && eos >= 0 && t->may_end && t->recorded == (int64_t)(tokens->count - before) + 1)
            rc = dsc_tokens_append(tokens, &eos, 1, err);
    }
    return rc;
}

bool dsc_import_rereadable(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}
