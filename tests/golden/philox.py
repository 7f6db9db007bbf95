# SPDX-License-Identifier: Apache-2.0
"""Philox4x32-10 (Salmon et al., SC 2011)."""


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def uniform(seed, request, position, use):
    """Returns 53 random bits in [0, 1), a function of the seed, the request, the position and the
    use."""
    low = 0xFFFFFFFF
    w = philox([request & low, request >> 32, position, use], [seed & low, seed >> 32])
    return ((w[0] << 32 | w[1]) >> 11) * 2.0**-53


# The known answer of Random123's kat_vectors for zero counter and key.
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
