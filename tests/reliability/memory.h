// SPDX-License-Identifier: Apache-2.0
// The memory of this process, where it can be measured.
#ifndef DSC_TESTS_MEMORY_H
#define DSC_TESTS_MEMORY_H

#include <stdio.h>

// Sanitizers keep what is freed and shadow what is not.
#ifdef __SANITIZE_ADDRESS__
enum { MEASURED = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { MEASURED = 0 };
#else
enum { MEASURED = 1 };
#endif
#else
enum { MEASURED = 1 };
#endif

// The most memory that this process had at once, in kB.
static inline long peak_kb(void)
{
    char line[200];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

#endif
