#!/bin/sh
# Builds the real programs, with debug information, from crates that bundle their source.
# usage: build.sh DIR [PROGRAM…]      (JOBS=2; CARGO=cargo; PROGRAM: sqlite lua zstd rocksdb boa, or X-clang)
#        build.sh DIR redis nginx go lapack
#                                 Debian's sources: as root, with `deb-src` in apt's list; wrk, golang-go and gfortran
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
shift
jobs=${JOBS:-2}
cargo=${CARGO:-cargo}
mkdir -p "$dir/bin" "$dir/objects" "$dir/crates/src"
dir=$(cd "$dir" && pwd)

# Versions are pinned, so that figures of two dates can be compared.
cat >"$dir/crates/Cargo.toml" <<'EOF'
[package]
name = "crates"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
libsqlite3-sys = "=0.37.0"
librocksdb-sys = "=0.17.3"
lua-src = "=550.1.1"
zstd-sys = "=2.1.2"
EOF
: >"$dir/crates/src/lib.rs"

# The folder of a crate's source: only fetched, never compiled by cargo.
crate() {
    (cd "$dir/crates" && $cargo metadata --format-version 1) |
        tr '{' '\n' | sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*/\1/p' |
        grep "/$1-[0-9]" | head -n 1
}

# compile COMPILER FLAGS OBJECT-FOLDER SOURCE…: one object each, $jobs at a time, what is there stays.
compile() {
    compiler=$1 flags=$2 objects=$3
    shift 3
    mkdir -p "$objects"
    for source in "$@"; do
        object=$objects/$(echo "$source" | tr '/' '_' | sed 's/\.[a-z]*$/.o/')
        [ -s "$object" ] || printf '%s\0%s\0' "$object" "$source"
    done | xargs -0 -r -n 2 -P "$jobs" nice -n 10 sh -c \
        "$compiler $flags -c \"\$1\" -o \"\$0.part\" && mv \"\$0.part\" \"\$0\""
}

# Each takes the C compiler, the C++ compiler and a suffix of the names.
sqlite() {
    source=$(crate libsqlite3-sys)/sqlite3
    compile "$1" "-O2 -g -I$source -DSQLITE_THREADSAFE=0" "$dir/objects/sqlite$3" \
        "$source/sqlite3.c" "$here/programs/sqlite.c"
    "$1" -g "$dir/objects/sqlite$3"/*.o -o "$dir/bin/sqlite$3" -ldl -lm
}

lua() {
    source=$(crate lua-src)/lua-5.5.0
    # shellcheck disable=SC2046 # a list of files
    compile "$1" "-O2 -g -I$source -DLUA_USE_POSIX" "$dir/objects/lua$3" \
        $(find "$source" -name 'l*.c' | sort) "$here/programs/lua.c"
    "$1" -g "$dir/objects/lua$3"/*.o -o "$dir/bin/lua$3" -lm
}

zstd() {
    source=$(crate zstd-sys)/zstd/lib
    # shellcheck disable=SC2046 # a list of files
    compile "$1" "-O2 -g -I$source -DZSTD_DISABLE_ASM" "$dir/objects/zstd$3" \
        $(find "$source/common" "$source/compress" "$source/decompress" -name '*.c' | sort) \
        "$here/programs/zstd.c"
    "$1" -g "$dir/objects/zstd$3"/*.o -o "$dir/bin/zstd$3"
}

rocksdb() {
    source=$(crate librocksdb-sys)
    includes="-I$source/rocksdb/include -I$source/rocksdb -I$source"
    defines="-DNDEBUG -DOS_LINUX -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX \
        -DROCKSDB_SCHED_GETCPU_PRESENT -DROCKSDB_SUPPORT_THREAD_LOCAL"
    # shellcheck disable=SC2046 # a list of files
    compile "$2" "-std=c++20 -O2 -g $includes $defines -w" "$dir/objects/rocksdb$3" \
        $(grep -v 'util/build_version.cc' "$source/rocksdb_lib_sources.txt" |
            sed "s|^ *|$source/rocksdb/|") \
        "$source/build_version.cc" "$here/programs/rocksdb.cc"
    "$2" -g "$dir/objects/rocksdb$3"/*.o -o "$dir/bin/rocksdb$3" -lpthread -ldl
}

boa() {
    (cd "$here/programs/boa" && CARGO_TARGET_DIR="$dir/objects/boa" nice -n 10 \
        $cargo build --release --locked -j "$jobs")
    cp "$dir/objects/boa/release/boa" "$dir/bin/boa"
}

# The source of a Debian package, unpacked as DIR/NAME; what its authors released, where a mirror lacks Debian's part.
debian() {
    [ -d "$dir/$1" ] && return
    (cd "$dir" && {
        apt-get source -q "$1" || tar -xf "$(find . -maxdepth 1 -name "$1_*.orig.tar.*" ! -name '*.asc')"
    } && mv "$(find . -maxdepth 1 -type d -name "$1-[0-9]*")" "$1")
}

redis() {
    debian redis
    nice -n 10 make -s -C "$dir/redis/src" -j "$jobs" MALLOC=libc OPT=-O2 redis-server redis-benchmark
    ln -sf "$dir/redis/src/redis-server" "$dir/bin/redis"
}

nginx() {
    debian nginx
    (cd "$dir/nginx" && ./configure --with-cc-opt='-O2 -g' --prefix="$dir/nginx/root" >/dev/null &&
        nice -n 10 make -s -j "$jobs" >/dev/null && make -s install >/dev/null)
    sed -i 's/listen  *80;/listen 7780;/' "$dir/nginx/root/conf/nginx.conf"
    ln -sf "$dir/nginx/root/sbin/nginx" "$dir/bin/nginx"
}

# LAPACK's own tests of eigenvalues and singular values, in Fortran, again and again.
lapack() {
    debian lapack
    (cd "$dir/lapack" && sed 's/^FFLAGS = .*/FFLAGS = -O2 -g -frecursive/' make.inc.example >make.inc &&
        nice -n 10 make -s -j "$jobs" blaslib lapacklib tmglib >/dev/null &&
        nice -n 10 make -s -C TESTING/EIG double >/dev/null)
    ln -sf "$dir/lapack/TESTING/EIG/xeigtstd" "$dir/bin/lapack"
    cat >"$dir/lapack/run.sh" <<SCRIPT
#!/bin/sh
cd "$dir/lapack/TESTING"
while :; do
    for input in svd sep; do "$dir/bin/lapack" <\$input.in >/dev/null; done
done
SCRIPT
    chmod +x "$dir/lapack/run.sh"
}

# Go's own compiler, with debug information, at work on a package of the standard library again and again.
go() {
    mkdir -p "$dir/go"
    root=$(command go env GOROOT)
    (cd "$root/src" && command go build -o "$dir/bin/go" cmd/compile &&
        command go list -export -deps -f '{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}' go/types \
            >"$dir/go/imports")
    cat >"$dir/go/run.sh" <<SCRIPT
#!/bin/sh
cd "$root/src"
while :; do
    GOMAXPROCS=1 "$dir/bin/go" -p go/types -o "$dir/go/out" -complete -importcfg "$dir/go/imports" \$(ls go/types/*.go | grep -v _test)
done
SCRIPT
    chmod +x "$dir/go/run.sh"
}

[ $# -gt 0 ] || set -- sqlite lua zstd rocksdb boa
for program in "$@"; do
    case $program in
    *-clang) "${program%-clang}" clang clang++ -clang ;;
    redis | nginx | go | lapack) "$program" ;;
    *) "$program" gcc g++ "" ;;
    esac
    ls -l "$dir/bin/$program"
done
