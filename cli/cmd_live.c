// SPDX-License-Identifier: Apache-2.0
// draftscope live: replaces this process by draftscope-live. That is a program of its own because
// it may link CUDA, which this one must not, as this one links GSL.
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
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

// Starts the program in the folder of this one, whatever the working directory is.
static int become_neighbor(char **argv, dsc_error *err)
{
    char path[4096];
    return cli_installed_at(path, sizeof path, 1, PROGRAM) ? become(path, argv, err) : DSC_OK;
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
    rc = become_neighbor(with, err);
    if (!rc)
        rc = become(BIN_DIR "/" PROGRAM, with, err);
    if (!rc) {
        execvp(PROGRAM, with);
        rc = dsc_fail(err, DSC_EABSENT,
                      "live: " PROGRAM " was found neither next to this program, nor in " BIN_DIR
                      ", nor on the PATH (./configure --disable-live does not build it)");
    }
    free(mem);
    return rc;
}

const cli_command cli_live = {
    .name = "live",
    .summary = "run, record and profile real models on this machine",
    .run = run,
};
