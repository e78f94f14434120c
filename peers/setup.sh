#!/usr/bin/env bash
# Installs what the engines need to build: LevelDB's library, and clang for RocksDB's bindings.
set -euo pipefail
apt-get install -y libleveldb-dev clang libclang-dev
