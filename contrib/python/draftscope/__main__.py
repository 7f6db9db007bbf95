# SPDX-License-Identifier: Apache-2.0
"""The programs as scripts of the package; `python -m draftscope` is the first of them."""
import sys

from draftscope._program import replace_process


def draftscope() -> None:
    replace_process("draftscope", sys.argv[1:])


def draftscope_live() -> None:
    replace_process("draftscope-live", sys.argv[1:])


if __name__ == "__main__":
    draftscope()
