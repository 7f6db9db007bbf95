// SPDX-License-Identifier: Apache-2.0
// PEARL (Liu et al. 2024, version 1): speedups predicted from two of its tables, without a fit. The
// acceptance rate is M/(1 + M), where M is the mean accepted length of Table 4; the ratio is the
// ratio of the speeds in Table 7. Also Theorem 2, by algebra and by simulation (theory/README.md).
#include "cli/validate/validate.h"
#include "theory/block.h"
#include "theory/pearl.h"

#include <math.h>
#include <string.h>

typedef struct pair {
    double rate, ratio, target_tokens_per_s;
} pair;

static int read_pair(pair *p, const validate_row *row, const char *where, dsc_error *err)
{
    double accepted, draft_tokens_per_s;
    int rc = validate_given(row, where, "accepted", NAN, &accepted, err);
    if (!rc)
        rc = validate_given(row, where, "draft_tokens_per_s", NAN, &draft_tokens_per_s, err);
    if (!rc)
        rc = validate_given(row, where, "target_tokens_per_s", NAN, &p->target_tokens_per_s, err);
    if (!rc && !(accepted >= 0 && draft_tokens_per_s > 0 && p->target_tokens_per_s > 0))
        rc = dsc_fail(err, DSC_EINPUT, "%s: '%.60s': a speed is not positive", row->path, where);
    if (!rc) {
        p->rate = accepted / (1 + accepted);
        p->ratio = draft_tokens_per_s / p->target_tokens_per_s;
    }
    return rc;
}

// The best of the windows in the table; the paper tried no others.
static double best_window(const validate_row *row, const char *where, const pair *p)
{
    double best = NAN, speedup = 0;
    for (size_t i = 0; i < row->count; i++) {
        const validate_figure *f = &row->figure[i];
        if (!validate_is(f, "tokens_per_s") || strcmp(f->where, where) != 0)
            continue;
        double s = dsc_pearl_speedup(DSC_PEARL_FULL, p->rate, f->at, p->ratio);
        if (s > speedup) {
            speedup = s;
            best = f->at;
        }
    }
    return best;
}

static double predict_pair(const validate_figure *f, const validate_row *row, const pair *p)
{
    if (validate_is(f, "best_window"))
        return best_window(row, f->where, p);
    if (!(f->at >= 1 && f->at <= DSC_BLOCK_LONGEST))
        return NAN;
    int length = (int)f->at;
    if (validate_is(f, "speedup"))
        return dsc_pearl_speedup(DSC_PEARL_FULL, p->rate, f->at, p->ratio);
    if (validate_is(f, "speedup_no_pre_verify"))
        return dsc_pearl_speedup(DSC_PEARL_NO_PRE_VERIFY, p->rate, f->at, p->ratio);
    if (validate_is(f, "speedup_no_post_verify"))
        return dsc_pearl_speedup(DSC_PEARL_NO_POST_VERIFY, p->rate, f->at, p->ratio);
    if (validate_is(f, "tokens_per_s"))
        return p->target_tokens_per_s * dsc_pearl_speedup(DSC_PEARL_FULL, p->rate, f->at, p->ratio);
    if (validate_is(f, "accepted_speculative"))
        return dsc_iid_accepted(p->rate, length);
    if (validate_is(f, "speedup_speculative"))
        return dsc_block_speedup(dsc_iid_accepted(p->rate, length), length,
                                 (dsc_block_cost){.draft = 1 / p->ratio});
    return NAN;
}

// Theorem 2: expected accepted draft tokens between two corrections at acceptance rate `at`.
static int predict_theorem(validate_figure *f, dsc_error *err)
{
    if (!(f->at >= 0 && f->at < 1))
        return DSC_OK;
    if (validate_is(f, "accepted_as_printed")) {
        f->predicted = dsc_pearl_accepted_as_printed(f->at);
    } else if (validate_is(f, "accepted_exact")) {
        f->predicted = dsc_pearl_accepted_exact(f->at);
    } else if (validate_is(f, "accepted_simulated")) {
        char words[160];
        validate_outcome o;
        snprintf(words, sizeof words,
                 "--target iid:%.6g --method pearl --requests 1 --max-tokens 200000", f->at);
        int rc = validate_simulate(words, "", &o, err);
        if (rc)
            return rc;
        f->predicted = o.num_accepted_tokens / (o.output_tokens - o.num_accepted_tokens);
    }
    return DSC_OK;
}

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    pair p;
    if (strcmp(f->where, "Theorem 2") == 0)
        return predict_theorem(f, err);
    int rc = read_pair(&p, row, f->where, err);
    if (!rc)
        f->predicted = predict_pair(f, row, &p);
    return rc;
}

const validate_row_type validate_pearl = {
    .name = "pearl",
    .summary = "PEARL, Tables 1, 3, 4 and 5 and Theorem 2, from acceptance rates and speeds alone",
    .predict = predict,
};
