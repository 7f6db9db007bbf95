// SPDX-License-Identifier: Apache-2.0
// keep_layers FOLDER TO LAYER...: writes a checkpoint with these layers of FOLDER into the folder
// TO, for tests of --draft-layers (tests/kept_layers.h).
#include "tests/kept_layers.h"

int main(int argc, char **argv)
{
    int64_t layer[64];
    dsc_error err = {0};
    const int count = argc - 3;
    if (count < 1 || count > 64)
        return 2;
    for (int i = 0; i < count; i++)
        layer[i] = atoi(argv[i + 3]);
    if (!kept_layers_write(argv[1], argv[2], layer, (size_t)count, &err))
        return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}
