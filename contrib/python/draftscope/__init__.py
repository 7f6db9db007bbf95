# SPDX-License-Identifier: Apache-2.0
"""draftscope: what speculative decoding would do for recorded traffic.

    import draftscope
    trace = draftscope.import_("logs.jsonl", tokenizer="tokenizer.json")
    frame = draftscope.tune(trace, method="ngram", num_speculative_tokens="1:8",
                            cost="linear:0.02,0.0002")
    print(draftscope.answer(frame))

Trace reads and writes recorded requests; sim, sweep, tune, serve, advise and table run the commands
of the program and return pandas data frames; plot draws them; theory has the closed forms on numpy
rows. What fails raises Error.
"""
from typing import TYPE_CHECKING, Any, List

from draftscope._program import Error, program
from draftscope._trace import Reference, Request, Row, Trace, import_
from draftscope._writer import TraceWriter

if TYPE_CHECKING:
    from draftscope import theory
    from draftscope._answer import Answer, Verdict, answer
    from draftscope._commands import advise, serve, sim, sweep, table, tune
    from draftscope._figure import Figure, plot
    from draftscope._tables import read_table, write_table

    __version__: str

__all__ = ["Answer", "Error", "Figure", "Reference", "Request", "Row", "Trace", "TraceWriter",
           "Verdict", "advise", "answer", "import_", "plot", "program", "read_table", "serve",
           "sim", "sweep", "table", "theory", "tune", "write_table"]

# What needs pandas or the library is loaded when it is first used; traces need numpy alone.
_LATER = {"Answer": "answer", "Verdict": "answer", "answer": "answer",
          "advise": "commands", "serve": "commands", "sim": "commands", "sweep": "commands",
          "table": "commands", "tune": "commands", "Figure": "figure", "plot": "figure",
          "read_table": "tables", "write_table": "tables"}


def __getattr__(name: str) -> Any:
    from importlib import import_module
    if name == "__version__":  # that of the program: configure.ac is the only place that has it
        from draftscope._program import run
        return run(["--version"])[0].split()[1]
    if name == "theory":
        return import_module("draftscope.theory")
    if name not in _LATER:
        raise AttributeError(f"module 'draftscope' has no attribute '{name}'")
    value = getattr(import_module("draftscope._" + _LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__, "__version__"})
