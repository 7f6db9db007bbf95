// SPDX-License-Identifier: Apache-2.0
// draftscope live: replaces this process by draftscope-live. That is a program of its own because
// it may link CUDA, which this one must not, as this one links GSL.
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "draftscope-live"

// Returns only when there is no such program.
static int become(const char *path, char **argv, dsc_error *err)
{
    execv(path, argv);
    return errno == ENOENT || errno == ENOTDIR || errno == EACCES
               ? DSC_OK
               : dsc_fail_errno(err, DSC_EABSENT, errno, "%.200s", path);
}

// Looks in the folder of this program, whatever the current folder is.
static int become_in_folder(char **argv, dsc_error *err)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    size_t folder = n > 0 && (size_t)n < sizeof path ? (size_t)n : 0;
    while (folder && path[folder - 1] != '/')
        folder--;
    if (!folder || folder + sizeof PROGRAM > sizeof path)
        return DSC_OK;
    memcpy(path + folder, PROGRAM, sizeof PROGRAM);
    return become(path, argv, err);
}

static int run(int argc, char **argv, dsc_error *err)
{
    void *mem;
    int rc = dsc_alloc(&mem, (size_t)argc + 2, sizeof(char *), err);
    if (rc)
        return rc;
    char **with = mem;
    with[0] = PROGRAM;
    for (int a = 0; a < argc; a++)
        with[a + 1] = argv[a];
    rc = become_in_folder(with, err);
    if (!rc)
        rc = become(BIN_DIR "/" PROGRAM, with, err);
    if (!rc) {
        execvp(PROGRAM, with);
        rc = dsc_fail(err, DSC_EABSENT,
                      "live: there is no " PROGRAM " in the folder of this program, in " BIN_DIR
                      " or on the PATH (./configure --disable-live leaves it out)");
    }
    free(mem);
    return rc;
}

const cli_command cli_live = {
    .name = "live",
    .summary = "run, record and profile real models on this machine",
    .run = run,
};
