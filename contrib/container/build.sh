#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages in a fresh Debian system and leaves them in deb/. Usage, as root: build.sh SOURCE_FOLDER
set -eu
cd "$1"
rm -f Makefile # of a build on another system, copied with the sources: its configuration does not hold here
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends make git ca-certificates
make deb CONFIGURE_FLAGS=--without-cuda
