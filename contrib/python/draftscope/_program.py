# SPDX-License-Identifier: Apache-2.0
"""Finds the programs of the package and runs them as child processes."""
from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, List, NoReturn, Optional, Sequence, Tuple

NATIVE = Path(__file__).resolve().parent / "_native"
PATIENCE_S = 60  # an interrupted program keeps its finished work within this time
LOOK_S = 1  # how often it is asked whether this process was interrupted


class Error(Exception):
    """A command or a function of the library failed.

    str(error) is one line: what is wrong, where, and what would be right.

    Attributes:
        exit_code: 1: a check failed or a result could not be written; 2: wrong usage; 3: a program,
            feature or device is missing; 4: bad input; 128 + n: ended by signal n.
        message: the line, without the name of the program.
        command: the command line, quoted for a shell; None for a function of the library.
    """

    def __init__(self, message: str, exit_code: int, command: Optional[str] = None):
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.command = command

    def __reduce__(self) -> Tuple[Any, ...]:
        return Error, (self.message, self.exit_code, self.command)


def program(name: str = "draftscope") -> str:
    """Returns the path of a program: that of the environment variable DRAFTSCOPE (or, for another
    program, its neighbor), else the packaged one, else the one on the PATH.

    Raises Error (exit code 3) when there is none.
    """
    given = os.environ.get("DRAFTSCOPE")
    if given:
        path = Path(given).with_name(name) if name != "draftscope" else Path(given)
    else:
        path = NATIVE / "bin" / name
    if os.access(path, os.X_OK):
        return str(path)
    found = None if given else shutil.which(name)
    if not found:
        raise Error(f"{name} was found neither at {path} nor on the PATH; install the package with "
                    "pip, or set DRAFTSCOPE to the path of the program", 3)
    return found


def options(keywords: Any, repeated: Sequence[str] = ()) -> List[str]:
    """Converts keyword arguments to options of the command line: num_drafts=4 to --num-drafts=4.

    True gives the option alone; False and None leave it out. A sequence becomes a list with commas,
    or, for the names in `repeated`, several options. A range becomes FIRST:LAST:STEP.
    """
    words: List[str] = []
    for name, value in keywords.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, range):
            if not value:
                raise ValueError(f"{name}: the range {value} is empty")
            words.append(f"{option}={value[0]}:{value[-1]}:{value.step}")
        elif isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
            items = value.tolist() if hasattr(value, "tolist") else value
            items = [str(x) for x in (items if isinstance(items, (list, tuple)) else [items])]
            words += [f"{option}={x}" for x in items] if name.replace("-", "_") in repeated else \
                [f"{option}={','.join(items)}"]
        else:
            words.append(f"{option}={os.fspath(value) if hasattr(value, '__fspath__') else value}")
    return words


def _reason(stderr: str, code: int) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    line = next((x for x in reversed(lines) if x.startswith("draftscope")), lines[-1] if lines
                else f"the program ended with exit code {code} and without a message")
    return line.partition(": ")[2] if line.startswith("draftscope") and ": " in line else line


def _interrupt(process: "subprocess.Popen[str]") -> None:
    """Stops a program as Ctrl-C does, and kills it when it takes too long."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=PATIENCE_S)
    except BaseException:  # a second Ctrl-C, or no end
        process.kill()
        process.communicate()


def _outputs(process: "subprocess.Popen[str]") -> Tuple[str, str]:
    """What the program prints until it ends.

    A signal that arrives just before the wait, or in another thread, does not end the wait:
    Python only notes it, so that the wait has to end now and then.
    """
    while True:
        try:
            return process.communicate(timeout=LOOK_S)
        except subprocess.TimeoutExpired:
            pass


def run(arguments: Sequence[str]) -> Tuple[str, List[str]]:
    """Runs draftscope with these arguments; returns its standard output and its notes.

    The program is a process group of its own, so that an interruption (Ctrl-C, or that of a
    notebook) reaches it once: from here. Raises Error, or KeyboardInterrupt after the program has
    ended.
    """
    argv = [program(), *map(str, arguments)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                          start_new_session=True) as process:
        try:
            out, err = _outputs(process)
        except BaseException:
            _interrupt(process)
            raise
    code = process.returncode
    if code:
        raise Error(_reason(err, code), code if code > 0 else 128 - code,
                    shlex.join(["draftscope", *argv[1:]]))
    prefix = "draftscope: note: "
    notes = [x[len(prefix):] if x.startswith(prefix) else x for x in err.splitlines() if x.strip()]
    return out, notes


def replace_process(name: str, arguments: Sequence[str]) -> NoReturn:
    """Becomes a packaged program: what the scripts `draftscope` and `draftscope-live` do."""
    path = NATIVE / "bin" / name
    if not os.access(path, os.X_OK):
        raise SystemExit(f"{name}: {path} is missing: this package was built without it")
    os.execv(path, [name, *arguments])
