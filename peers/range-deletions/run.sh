#!/bin/sh
# Prints what range deletions cost in Shingle and in RocksDB, line by line; the columns are explained
# in docs/design/range-deletions.md. RocksDB is the library in the newest package for Java that Maven
# has for this machine, called from C: no binding is measured. Needs mvn, unzip and gcc.
#
#     peers/range-deletions/run.sh DIRECTORY > results.tsv
set -e
version=${ROCKSDB_VERSION:-11.8.1}
dir=$1
here=$(cd "$(dirname "$0")" && pwd)
[ -n "$dir" ] || { echo "run.sh DIRECTORY" >&2; exit 2; }
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

library=librocksdbjni-linux64.so
if [ ! -f "$dir/$library" ]; then
    mvn -q dependency:get -Dartifact=org.rocksdb:rocksdbjni:"$version" -Dtransitive=false >&2
    jar=$HOME/.m2/repository/org/rocksdb/rocksdbjni/$version/rocksdbjni-$version.jar
    unzip -o -q "$jar" "$library" -d "$dir"
fi
gcc -O2 -Wall -o "$dir/rocksdb" "$here/rocksdb.c" -L"$dir" -l:"$library" -Wl,-rpath,"$dir"
(cd "$here/../.." && cargo build --release -p shingle --example measure_range_deletions) >&2
target=${CARGO_TARGET_DIR:-$here/../../target}

# More memory than 12 GB, or more time than 10 minutes, is a result too.
limited() {
    rm -rf "$dir/database"
    (ulimit -v 12000000; timeout 600 "$@") || echo "$1 $3 $4 ended: memory, time or an error" >&2
    rm -rf "$dir/database"
}
for shape in disjoint rolling; do
    for deletions in 0 100 10000 1000000; do
        limited "$target/release/examples/measure_range_deletions" "$dir/database" $shape $deletions
        limited "$dir/rocksdb" "$dir/database" $shape $deletions
    done
done
limited "$dir/rocksdb" "$dir/database" rolling 1000000 1000
limited "$target/release/examples/measure_range_deletions" "$dir/database" disjoint 1000000 defaults
limited "$dir/rocksdb" "$dir/database" disjoint 1000000 defaults
