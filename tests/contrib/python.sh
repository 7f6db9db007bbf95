# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# What tests of Python programs begin with:
#
#     . "${top_srcdir:-.}/tests/contrib/python.sh"
#     find_python numpy pandas || exit 77
#
# sets `top`, `draftscope` and `work` as cli/common.sh does, stays in the folder `work`, and sets
# `python` to an interpreter that has these modules: $PYTHON if it is set, otherwise that of the PATH
# or the system's.
. "${top_srcdir:-.}/tests/cli/common.sh"
PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$top/contrib/python${PYTHONPATH:+:$PYTHONPATH}
export PYTHONDONTWRITEBYTECODE PYTHONPATH

find_python() { # modules...
    modules=$(echo "$*" | sed 's/ /, /g')
    for python in ${PYTHON:-python3 /usr/bin/python3}; do
        "$python" -c "import $modules" 2>/dev/null && return 0
    done
    echo "skipped: no ${PYTHON:-python3} with $modules"
    return 1
}
