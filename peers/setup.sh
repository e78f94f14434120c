#!/usr/bin/env bash
# Installs what the engines need to build: LevelDB's library, clang for RocksDB's bindings, and
# RocksDB's library from its package for Java, of the release that the bindings are made for. It has
# RocksDB's interface in C; compiling it takes 25 minutes. Needs mvn and unzip.
set -euo pipefail
apt-get install -y libleveldb-dev clang libclang-dev
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n '/name = "librocksdb-sys"/,/version/s/.*+\(.*\)".*/\1/p' "$here/Cargo.lock")
library=librocksdbjni-linux64.so
to=$here/target/rocksdb
mvn -q dependency:get -Dartifact=org.rocksdb:rocksdbjni:"$version" -Dtransitive=false
mkdir -p "$to"
unzip -o -q "$HOME/.m2/repository/org/rocksdb/rocksdbjni/$version/rocksdbjni-$version.jar" "$library" -d "$to"
mv "$to/$library" "$to/librocksdb.so"
