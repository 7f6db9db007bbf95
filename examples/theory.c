// SPDX-License-Identifier: Apache-2.0
// Prints the acceptance probability of one position with k independent drafts under three lossless
// rules, for two Zipf distributions that differ by Gaussian noise on the target's logits:
//     theory [NOISE]
//     cc theory.c $(pkg-config --cflags --libs draftscope) -o theory
#include <draftscope.h>

#include <stdio.h>
#include <stdlib.h>

enum { VOCAB = 1000, MAX_DRAFTS = 8 };

int main(int argc, char **argv)
{
    static double draft[VOCAB], target[VOCAB];
    dsc_error err;
    static dsc_curve curve; // zero-initialized
    const double noise = argc > 1 ? atof(argv[1]) : 1;
    if (!(noise >= 0)) {
        fprintf(stderr, "theory: NOISE is %s; it must be at least 0\n", argv[1]);
        return 2;
    }
    dsc_probs_zipf(VOCAB, 1.0, noise, 1, draft, target);
    // W(c) = sum over tokens of (target - c draft)+: every acceptance below follows from it.
    int rc = dsc_curve_init(&curve, draft, target, VOCAB, &err);
    if (rc) {
        fprintf(stderr, "theory: %s\n", err.message);
        return dsc_exit_code(rc);
    }
    printf("drafts  kseq    specinfer  optimal\n");
    for (int k = 1; k <= MAX_DRAFTS; k++)
        printf("%-6d  %.4f  %.4f     %.4f\n", k, dsc_kseq_best(&curve, k).accept,
               dsc_specinfer_acceptance(&curve, k), dsc_otm_value(&curve, k).accept);
    dsc_curve_fini(&curve);
    return 0;
}
