// SPDX-License-Identifier: Apache-2.0
// Cells without a value: empty in TSV, null in JSON lines, and absent again when read.
#include "tests/unit/table_fixture.h"

#include "base/file.h"
#include "base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Parameters that only some methods have, in both formats, where the first row lacks them as well.
static void absent_cells_round_trip(void **state)
{
    (void)state;
    dsc_error e;
    for (int jsonl = 0; jsonl < 2; jsonl++)
        for (int64_t lacks = 0; lacks < 3; lacks++) {
            const char *path = jsonl ? "absent_cells.jsonl" : "absent_cells.tsv";
            dsc_table t = {0}, u;
            char *text;
            assert_ok(dsc_table_add_column(&t, "n", DSC_CELL_INT, NULL, &e), e);
            assert_ok(dsc_table_add_column(&t, "factor", DSC_CELL_REAL, NULL, &e), e);
            for (int64_t i = 0; i < 3; i++) {
                const dsc_cell row[] = {i == lacks ? dsc_cell_absent() : dsc_cell_int(10 * i),
                                        i == lacks ? dsc_cell_absent() : dsc_cell_real(i + .5)};
                assert_ok(dsc_table_add_row(&t, row, &e), e);
            }
            write_table(&t, path, jsonl);
            assert_ok(dsc_read_text(&text, path, 1000, &e), e);
            assert_null(strstr(text, "nan"));
            assert_null(strstr(text, "10.0"));
            free(text);
            assert_ok(dsc_table_read(&u, path, &e), e);
            assert_int_equal(u.column[0].type, DSC_CELL_INT);
            assert_int_equal(u.column[1].type, DSC_CELL_REAL);
            for (int64_t i = 0; i < 3; i++) {
                const dsc_cell *n = dsc_table_at(&u, (size_t)i, 0);
                assert_int_equal(n->absent, i == lacks);
                assert_true(i == lacks || (n->type == DSC_CELL_INT && n->i == 10 * i));
                assert_true(isnan(dsc_table_real(&u, (size_t)i, 0)) == (i == lacks));
                assert_true(isnan(dsc_table_real(&u, (size_t)i, 1)) == (i == lacks));
            }
            assert_int_equal(remove(path), 0);
            dsc_table_fini(&t);
            dsc_table_fini(&u);
        }
}

SUITE(absent)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_cells_round_trip),
    };
    return cmocka_run_group_tests_name("absent cells", tests, NULL, NULL);
}
