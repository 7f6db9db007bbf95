# SPDX-License-Identifier: Apache-2.0
"""libdraftscope through ctypes: the functions of the installed headers theory/*.h.

ctypes.CDLL releases the global interpreter lock during a call.
"""
from __future__ import annotations

import ctypes
import functools
import os
import re
from ctypes import (POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_float, c_int,
                    c_int32, c_int64, c_size_t, c_void_p)
from typing import Any, Dict, List, Tuple

from draftscope._program import NATIVE, Error

SONAME = "libdraftscope.so.0"

__all__ = ["library", "check", "byref", "c_double", "c_float", "c_int", "c_int32"]


class ErrorRecord(Structure):  # base/status.h
    _fields_ = [("status", c_int), ("message", c_char * 1024)]


class CurveC(Structure):  # theory/curve.h
    _fields_ = [("atoms", c_size_t), ("ratio", c_void_p), ("draft_below", c_void_p),
                ("target_below", c_void_p), ("draft_above", c_void_p), ("target_above", c_void_p)]


class KSeqC(Structure):  # theory/kseq.h
    _fields_ = [("k", c_int), ("rho", c_double), ("beta", c_double), ("accept", c_double)]


class OtmC(Structure):  # theory/otm.h
    _fields_ = [("k", c_int), ("accept", c_double), ("cut", c_size_t), ("draft_in", c_double),
                ("target_in", c_double)]


class RuleAcceptanceC(Structure):  # theory/acceptance.h
    _fields_ = [("k", c_int), ("single", c_double), ("specinfer", c_double), ("kseq", c_double),
                ("kseq_rho", c_double), ("otm", c_double)]


class AcceptanceC(Structure):  # theory/block.h
    _fields_ = [("rate", c_double), ("conditional_rate", c_void_p), ("conditional_rates", c_int)]


class AcceptanceRatesC(Structure):  # sim/acceptance.h
    _fields_ = [("conditional_rate", c_void_p), ("positions", c_int), ("later", c_double),
                ("request_sd", c_double), ("one_draft", c_bool), ("note", c_char * 400)]


class BlockCostC(Structure):
    _fields_ = [("draft", c_double), ("slope", c_double)]


class BlockBestC(Structure):
    _fields_ = [("length", c_int), ("accepted", c_double), ("speedup", c_double)]


class ConditionalCountC(Structure):
    _fields_ = [("at_risk", c_int64), ("accepted", c_int64)]


class TreeC(Structure):  # theory/tree.h
    _fields_ = [("nodes", c_int), ("depth", c_int), ("parent", POINTER(c_int32)),
                ("rank", POINTER(c_int32)), ("level", POINTER(c_int32))]


class TreeAcceptanceC(Structure):
    _fields_ = [("rate", c_void_p), ("depths", c_int), ("ranks", c_int)]


class TreeCostC(Structure):
    _fields_ = [("draft", c_double), ("target", c_void_p)]


class TreeChoiceC(Structure):
    _fields_ = [("nodes", c_int), ("depth", c_int), ("expected", c_double), ("speedup", c_double)]


_err, _rows = POINTER(ErrorRecord), c_void_p  # rows are passed as addresses
_curve = POINTER(CurveC)
# Function, type of the result, types of the parameters.
SIGNATURES: Dict[str, Tuple[Any, List[Any]]] = {
    "dsc_exit_code": (c_int, [c_int]),
    "dsc_curve_init": (c_int, [_curve, _rows, _rows, c_size_t, _err]),
    "dsc_curve_fini": (None, [_curve]),
    "dsc_curve_w": (c_double, [_curve, c_double]),
    "dsc_single_acceptance": (c_double, [_curve]),
    "dsc_single_residual": (None, [_rows, _rows, c_size_t, _rows]),
    "dsc_kseq_best": (KSeqC, [_curve, c_int]),
    "dsc_kseq_residual": (None, [POINTER(KSeqC), _rows, _rows, c_size_t, _rows]),
    "dsc_specinfer_acceptance": (c_double, [_curve, c_int]),
    "dsc_otm_value": (OtmC, [_curve, c_int]),
    "dsc_otm_limit": (c_double, [_curve]),
    "dsc_otm_wor": (c_int, [_rows, _rows, c_size_t, c_int, _rows, _err]),
    "dsc_otm_greedy": (c_int, [_rows, _rows, c_size_t, c_int, _rows, _err]),
    "dsc_acceptance_of_curve": (None, [_curve, POINTER(c_int), c_size_t,
                                       POINTER(RuleAcceptanceC)]),
    "dsc_acceptance_work_new": (c_int, [POINTER(c_void_p), _err]),
    "dsc_acceptance_work_free": (None, [c_void_p]),
    "dsc_acceptance_of_rows": (c_int, [_rows, _rows, c_size_t, c_int, POINTER(RuleAcceptanceC),
                                       c_void_p, _err]),
    "dsc_probs_softmax": (c_int, [c_char_p, _rows, c_size_t, c_double, c_int64, c_double, _err]),
    "dsc_acceptance_rates_read": (c_int, [POINTER(AcceptanceRatesC), c_char_p, _err]),
    "dsc_acceptance_rates_fill": (None, [POINTER(AcceptanceRatesC), c_int64, _rows]),
    "dsc_acceptance_rates_fini": (None, [POINTER(AcceptanceRatesC)]),
    "dsc_iid_rate": (c_double, [c_double, c_int]),
    "dsc_block_accepted": (c_int, [POINTER(AcceptanceC), c_int, _rows, _err]),
    "dsc_block_speedup": (c_double, [c_double, c_int, BlockCostC]),
    "dsc_block_best_length": (c_int, [POINTER(AcceptanceC), c_int, c_int, BlockCostC,
                                      POINTER(BlockBestC), _err]),
    "dsc_conditional_add": (c_int, [POINTER(ConditionalCountC), c_int, c_int, c_int, c_int64,
                                    _err]),
    "dsc_conditional_rate": (c_double, [POINTER(ConditionalCountC)]),
    "dsc_block_ratio": (c_double, [c_double, c_double, c_double]),
    "dsc_block_coin": (c_double, [c_double, c_double]),
    "dsc_tree_new": (c_int, [POINTER(TreeC), c_size_t, _err]),
    "dsc_tree_fini": (None, [POINTER(TreeC)]),
    "dsc_tree_named": (c_int, [POINTER(TreeC), c_char_p, _err]),
    "dsc_tree_parse": (c_int, [POINTER(TreeC), c_char_p, c_char_p, _err]),
    "dsc_tree_expect": (c_int, [POINTER(TreeC), POINTER(TreeAcceptanceC), _rows,
                                POINTER(c_double), _err]),
    "dsc_tree_plan_new": (c_int, [POINTER(c_void_p), POINTER(TreeAcceptanceC), c_int, c_int, _err]),
    "dsc_tree_plan_free": (None, [c_void_p]),
    "dsc_tree_plan_best": (TreeChoiceC, [c_void_p, POINTER(TreeCostC)]),
    "dsc_tree_plan_tree": (c_int, [c_void_p, c_int, c_int, POINTER(TreeC), _err]),
}


def _path() -> str:
    given = os.environ.get("DRAFTSCOPE_LIBRARY")
    packaged = NATIVE / "lib" / SONAME
    return given or (str(packaged) if packaged.exists() else SONAME)


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """Returns the library: that of the environment variable DRAFTSCOPE_LIBRARY, else the packaged
    one, else the one that the loader finds. Raises Error (exit code 3) when there is none."""
    path = _path()
    try:
        found = ctypes.CDLL(path)
        for name, (result, parameters) in SIGNATURES.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, parameters
    except (OSError, AttributeError) as e:
        raise Error(f"the library cannot be used: {e}; install the package with pip, or set "
                    "DRAFTSCOPE_LIBRARY to the path of libdraftscope.so", 3) from None
    return found


def check(status: int, record: ErrorRecord, where: str = "") -> None:
    """Raises Error unless the status is DSC_OK."""
    if status:
        message = record.message.decode("utf-8", "replace")
        message = re.sub(r"^dsc_\w+: ", "", message)  # the name of the function in C
        raise Error(f"{where}: {message}" if where else message, library().dsc_exit_code(status))
