#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of a folder, as `make deb` wrote it, in a fresh Debian system: what the Dockerfile
# runs, and what tests/cli/test_deb.sh runs in a root of debootstrap. Usage, as root: install.sh FOLDER
set -eu
apt-get update -qq
DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND
# The first call leaves the packages unpacked; the second installs what they depend on.
dpkg -i "$1"/draftscope_*.deb "$1"/draftscope-live_*.deb "$1"/libdraftscope0_*.deb || :
apt-get install -y -qq --no-install-recommends --fix-broken
dpkg --audit
apt-get clean
rm -rf /var/lib/apt/lists/*
draftscope --version
draftscope live list
