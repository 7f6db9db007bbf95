// SPDX-License-Identifier: Apache-2.0
// Opens shared libraries by dlopen, each in its own scope: their symbols do not replace symbols of
// this program, and the loader finds their own dependencies.
#include "live/device/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// Copies the loader's message about the last failure, which it returns only once.
static void keep_reason(char *reason, size_t bytes)
{
    const char *message = dlerror();
    snprintf(reason, bytes, "%s", message ? message : "the loader gives no reason");
}

static void *open_file(const live_library *l, dsc_error *err)
{
    char reason[256], path[512];
    void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    if (handle)
        return handle;
    keep_reason(reason, sizeof reason);
    const int n = snprintf(path, sizeof path, "%s/%s", l->folder, l->file);
    if (*l->folder && n > 0 && (size_t)n < sizeof path)
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        dsc_fail(err, DSC_EABSENT,
                 "%s cannot be loaded: %s; searched LD_LIBRARY_PATH, the loader's folders%s%s: %s, "
                 "or add its folder to LD_LIBRARY_PATH",
                 l->name, reason, *l->folder ? " and " : "", l->folder, l->mend);
    return handle;
}

int live_library_open(const live_library *library, const live_symbol *symbol, size_t symbols,
                      dsc_error *err)
{
    void *handle = open_file(library, err);
    if (!handle)
        return DSC_EABSENT;
    for (size_t i = 0; i < symbols; i++) {
        void *found = dlsym(handle, symbol[i].name);
        if (!found)
            return dsc_fail(err, DSC_EABSENT, "%s: %s has no function %s: %s", library->name,
                            library->file, symbol[i].name, library->mend);
        memcpy(symbol[i].pointer, &found, sizeof found); // an object pointer as a function pointer
    }
    return DSC_OK;
}
