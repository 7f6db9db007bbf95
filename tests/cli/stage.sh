# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
# Installs the library, its headers and draftscope.pc below $plain_folder/stage, for scripts that use it as a
# program outside the tree does. After common.sh. Sets `build` (the build folder), `include` (the
# installed headers), `libraries` (the folder of the installed library), and `cc` and `cxx`, compilers
# with the build's sanitizers, `cxx` empty where there is no C++ compiler.
build=${draftscope%/*}
stage=$plain_folder/stage
if ! (cd "$build" && MAKEFLAGS='' MFLAGS='' ${MAKE:-make} install-libLTLIBRARIES \
    install-nobase_pkgincludeHEADERS install-pkgconfigDATA DESTDIR="$stage") >install.log 2>&1; then
    not_ok "the library is installed"
    sed 's/^/# /' install.log
    exit 1
fi
include=$(find "$stage" -name draftscope.h)
include=${include%/*}
libraries=$(find "$stage" -name 'libdraftscope.*' | head -n 1)
libraries=${libraries%/*}
cc="${CC:-cc} $SANITIZE_CFLAGS"
cxx=${CXX:-c++}
command -v "${cxx%% *}" >/dev/null || cxx=
cxx=${cxx:+$cxx $SANITIZE_CFLAGS}
