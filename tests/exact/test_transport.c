// SPDX-License-Identifier: Apache-2.0
// The optimal acceptances of theory/otm.h against the transport problem itself: SpecTr (Sun et al.
// 2023) Eq. (4) as a linear program, solved by GLPK, and its min cut over all token sets.
#include "tests/close.h"

#include "tests/exact/draws.h"
#include "theory/otm.h"

#include <glpk.h>

enum { MAX_TUPLES = 1 << 12 };

// One equality per draft (a tuple or a set, with its tokens as a bit mask) and per token.
static double solve(const pair *p, const double *mass, const unsigned *tokens, size_t drafts)
{
    size_t vocab = p->vocab, terms = 0, columns = drafts * vocab;
    int *row = calloc(2 * columns + 1, sizeof *row), *column = calloc(2 * columns + 1, sizeof *row);
    double *one = calloc(2 * columns + 1, sizeof *one);
    glp_prob *lp = glp_create_prob();
    glp_set_obj_dir(lp, GLP_MIN);
    glp_add_rows(lp, (int)(drafts + vocab));
    glp_add_cols(lp, (int)columns);
    for (size_t i = 0; i < drafts; i++)
        glp_set_row_bnds(lp, (int)i + 1, GLP_FX, mass[i], mass[i]);
    for (size_t y = 0; y < vocab; y++)
        glp_set_row_bnds(lp, (int)(drafts + y) + 1, GLP_FX, p->target[y], p->target[y]);
    // One equality follows from the others; rounding must not make it contradict them.
    glp_set_row_bnds(lp, (int)(drafts + vocab), GLP_FR, 0, 0);
    for (size_t i = 0; i < drafts; i++)
        for (size_t y = 0; y < vocab; y++) {
            int j = (int)(i * vocab + y) + 1;
            glp_set_col_bnds(lp, j, GLP_LO, 0, 0);
            glp_set_obj_coef(lp, j, tokens[i] >> y & 1 ? 0 : 1);
            row[++terms] = (int)i + 1, column[terms] = j, one[terms] = 1;
            row[++terms] = (int)(drafts + y) + 1, column[terms] = j, one[terms] = 1;
        }
    glp_load_matrix(lp, (int)terms, row, column, one);
    glp_smcp options;
    glp_init_smcp(&options);
    options.tol_bnd = options.tol_dj = 1e-12;
    glp_term_out(GLP_OFF);
    glp_adv_basis(lp, 0);
    assert_int_equal(glp_simplex(lp, &options), 0);
    assert_int_equal(glp_get_status(lp), GLP_OPT);
    double cost = glp_get_obj_val(lp);
    glp_delete_prob(lp);
    free(row);
    free(column);
    free(one);
    return 1 - cost;
}

// The same, with the drafts of one token set as one row, because they may serve the same tokens.
static double solve_sets(const pair *p, const double *dist)
{
    double mass[1 << MAX_VOCAB];
    unsigned tokens[1 << MAX_VOCAB];
    size_t drafts = 0;
    for (unsigned s = 0; s < 1u << p->vocab; s++)
        if (dist[s] > 0) {
            mass[drafts] = dist[s];
            tokens[drafts++] = s;
        }
    return solve(p, mass, tokens, drafts);
}

// Eq. (4) by its definition: vocab^k tuples.
static double solve_tuples(const pair *p, int k)
{
    static double mass[MAX_TUPLES];
    static unsigned tokens[MAX_TUPLES];
    size_t drafts = 1;
    for (int i = 0; i < k; i++)
        drafts *= p->vocab;
    for (size_t i = 0; i < drafts; i++) {
        size_t digits = i;
        mass[i] = 1;
        tokens[i] = 0;
        for (int j = 0; j < k; j++, digits /= p->vocab) {
            mass[i] *= p->draft[digits % p->vocab];
            tokens[i] |= 1u << digits % p->vocab;
        }
    }
    return solve(p, mass, tokens, drafts);
}

static double alpha(const pair *p, int k)
{
    dsc_error e;
    dsc_curve c;
    assert_ok(dsc_curve_init(&c, p->draft, p->target, p->vocab, &e), e);
    double accept = dsc_otm_value(&c, k).accept;
    dsc_curve_fini(&c);
    return accept;
}

static void tuples(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 5 * PAIR_SHAPES; n++)
        for (int k = 1; k <= 3; k++) {
            pair p = small_pair(n, 1 + n % 8);
            assert_close(alpha(&p, k), solve_tuples(&p, k), 1e-9);
        }
}

static void replacement(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 7 * PAIR_SHAPES; n++)
        for (int k = 1; k <= 3; k++) {
            pair p = small_pair(n, 2 + n % 7);
            double dist[1 << MAX_VOCAB] = {0};
            draw(&p, k, 1, 0, 1, dist);
            assert_close(alpha(&p, k), best_acceptance(&p, dist), 1e-12);
            assert_close(alpha(&p, k), solve_sets(&p, dist), 1e-9);
        }
}

static void without_replacement(void **state)
{
    (void)state;
    dsc_error e;
    for (uint64_t n = 0; n < 7 * PAIR_SHAPES; n++) {
        pair p = small_pair(n, 2 + n % 5);
        double accept[4];
        assert_ok(dsc_otm_wor(p.draft, p.target, p.vocab, 4, accept, &e), e);
        for (int k = 1; k <= 4; k++) {
            double dist[1 << MAX_VOCAB] = {0};
            draw(&p, k, 0, 0, 1, dist);
            assert_close(accept[k - 1], solve_sets(&p, dist), 1e-9);
        }
    }
}

static void greedy(void **state)
{
    (void)state;
    dsc_error e;
    for (uint64_t n = 0; n < 7 * PAIR_SHAPES; n++) {
        pair p = small_pair(n, 2 + n % 7);
        double accept[4];
        assert_ok(dsc_otm_greedy(p.draft, p.target, p.vocab, 4, accept, &e), e);
        for (int k = 1; k <= 4; k++) {
            double dist[1 << MAX_VOCAB] = {0};
            draw_greedy(&p, k, dist);
            assert_close(accept[k - 1], solve_sets(&p, dist), 1e-9);
        }
    }
}

SUITE(transport)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tuples),
        cmocka_unit_test(replacement),
        cmocka_unit_test(without_replacement),
        cmocka_unit_test(greedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
