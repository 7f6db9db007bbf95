// SPDX-License-Identifier: Apache-2.0
// Leviathan, Kalman and Matias 2023: speedup in wall time by Theorem 3.8 from the measured
// acceptance rate alpha and the cost coefficient c.
#include "cli/validate/validate.h"
#include "theory/block.h"

#include <math.h>

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    double alpha, c;
    int rc = validate_given(row, f->where, "alpha", NAN, &alpha, err);
    if (!rc)
        rc = validate_given(row, f->where, "c", NAN, &c, err);
    if (!rc && !(alpha >= 0 && alpha <= 1 && c >= 0 && f->at >= 1 && f->at <= 100))
        rc = dsc_fail(err, DSC_EINPUT, "%s: '%.60s': alpha, c or gamma is out of range", row->path,
                      f->where);
    if (!rc && (validate_is(f, "speedup_expected") || validate_is(f, "speedup_measured")))
        f->predicted = dsc_block_speedup(dsc_iid_accepted(alpha, (int)f->at), (int)f->at,
                                         (dsc_block_cost){.draft = c});
    return rc;
}

const validate_row_type validate_leviathan = {
    .name = "leviathan",
    .summary = "Leviathan et al. 2023, Table 2: the closed form with the published c",
    .predict = predict,
};
