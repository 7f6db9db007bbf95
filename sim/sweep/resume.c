// SPDX-License-Identifier: Apache-2.0
// Compares the head of an unfinished file with that of the sweep that would go on with it.
#include "sim/sweep/resume.h"

#include <string.h>

bool dsc_resume_same(const dsc_table *a, const dsc_table *b)
{
    bool same = a->columns == b->columns && a->comments == b->comments;
    for (size_t c = 0; same && c < a->columns; c++)
        same = strcmp(a->column[c].name, b->column[c].name) == 0;
    for (size_t i = 0; same && i < a->comments; i++)
        same = strcmp(a->key[i], b->key[i]) == 0 &&
               (strcmp(a->key[i], "command") == 0 || strcmp(a->value[i], b->value[i]) == 0);
    return same;
}

static bool same_shard(const dsc_table *head, const dsc_split *split, const dsc_shard_reader *r)
{
    char ours[DSC_SPLIT_TEXT], theirs[DSC_SPLIT_TEXT];
    dsc_split_text(split, ours);
    dsc_split_text(&r->split, theirs);
    return strcmp(ours, theirs) == 0 && dsc_resume_same(head, &r->head);
}

int dsc_resume_shard(dsc_part_file *f, const dsc_table *head, const dsc_split *split,
                     dsc_shard_reader *r, bool *fresh, dsc_error *err)
{
    long length;
    *r = (dsc_shard_reader){0};
    int rc = dsc_part_file_cut_lines(f, 0, &length, err);
    *fresh = length == 0;
    if (rc || *fresh)
        return rc;
    rc = dsc_shard_reader_open(r, f->part, err);
    if (rc == DSC_EINPUT && !r->begun) { // killed while it wrote the head
        *fresh = true;
        return dsc_part_file_cut(f, 0, err);
    }
    if (rc == DSC_EINPUT || (!rc && !same_shard(head, split, r)))
        return dsc_fail(err, DSC_EUSAGE,
                        "%s is left from a different sweep: remove it, or add --force to start "
                        "again",
                        f->part);
    return rc;
}
