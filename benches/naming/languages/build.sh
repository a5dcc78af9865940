#!/bin/sh
# Builds the programs in Fortran, Go, D and Zig, and those with coroutines: OUT/bin/NAME.VARIANT, as the instrument names
# them. OUT also gets the truth runtime (truth.o) and the stepper. What has no compiler here is skipped, with a line that
# says so.
#   build.sh INSTRUMENT OUT
# Needs gcc and g++, and of gfortran, clang++, go (1.18 or later, without cgo), gdc and zig (0.17: `pip install ziglang`)
# what is there.
set -eu
if [ $# -ne 2 ]; then
    echo "usage: build.sh INSTRUMENT OUT" >&2
    exit 2
fi
here=$(dirname "$(readlink -f "$0")")
instrument=$(readlink -f "$1")
mkdir -p "$2/bin" "$2/objects"
out=$(readlink -f "$2")
runtime=$out/truth.o
vector=-march=x86-64-v3

[ -f "$runtime" ] || gcc -O2 -fPIC -c "$instrument/src/truth.c" -o "$runtime"
[ -f "$out/stepper" ] || gcc -O2 "$instrument/stepper.c" -o "$out/stepper"

# Whether a compiler is there.
has() { # COMPILER PROGRAM
    command -v "$1" >/dev/null && return
    echo "build.sh: no $1, $2 is skipped" >&2
    return 1
}

# Whether a program is older than what it is made of.
stale() { # PROGRAM SOURCE...
    program=$1
    shift
    [ -f "$program" ] || return 0
    [ -n "$(find "$@" -newer "$program" 2>/dev/null)" ]
}

fortran() { # NAME VARIANT FLAGS...
    name=$1 variant=$2
    shift 2
    stale "$out/bin/$name.$variant" "$here/$name.f90" "$here/${name}_truth.c" "$runtime" || return 0
    mkdir -p "$out/objects/$name.$variant"
    gcc -O2 -I"$instrument/src" -c "$here/${name}_truth.c" -o "$out/objects/${name}_truth.o"
    gfortran "$@" -g -J "$out/objects/$name.$variant" "$here/$name.f90" \
        "$out/objects/${name}_truth.o" "$runtime" -pthread -o "$out/bin/$name.$variant"
}

coroutines() { # NAME VARIANT COMPILER FLAGS...
    name=$1 variant=$2
    shift 2
    stale "$out/bin/$name.$variant" "$here/$name.cpp" "$here"/../heap.h* "$runtime" || return 0
    "$@" -std=c++20 -g -I"$instrument/src" -pthread "$here/$name.cpp" "$runtime" -o "$out/bin/$name.$variant"
}

go_program() { # NAME VARIANT FLAGS...
    name=$1 variant=$2
    shift 2
    stale "$out/bin/$name.$variant" "$here/$name.go" || return 0
    CGO_ENABLED=0 GO111MODULE=off go build "$@" -o "$out/bin/$name.$variant" "$here/$name.go"
}

d_program() { # NAME VARIANT FLAGS...
    name=$1 variant=$2
    shift 2
    stale "$out/bin/$name.$variant" "$here/$name.d" "$runtime" || return 0
    gdc "$@" -g "$here/$name.d" "$runtime" -pthread -o "$out/bin/$name.$variant"
}

# Linked by gcc: of programs by zig's own linker, whose segments share pages of the file, the instrument takes
# addresses that count from the instruction for 4096 bytes more than they are.
zig_program() { # NAME VARIANT LINKER_FLAG FLAGS...
    name=$1 variant=$2 link=$3
    shift 3
    stale "$out/bin/$name.$variant" "$here/$name.zig" "$runtime" || return 0
    $zig build-obj "$@" -mcpu=x86_64_v3 -fno-strip -fcompiler-rt -lc "$here/$name.zig" \
        -femit-bin="$out/objects/$name.$variant.o" --cache-dir "$out/objects/zig" &&
        gcc "$link" "$out/objects/$name.$variant.o" "$runtime" -lm -pthread -o "$out/bin/$name.$variant"
}

if has gfortran ocean.f90; then
    fortran ocean gcc-O2 -O2
    fortran ocean gcc-O3 -O3 $vector
fi
coroutines streams gcc-O2 g++ -O2
coroutines streams gcc-O3 g++ -O3 $vector
if has clang++ "streams.cpp by it"; then
    coroutines streams clang-O2 clang++ -O2 || echo "build.sh: clang++ does not build streams.cpp" >&2
fi
if has go shop.go; then
    go_program shop go-O
    go_program shop go-N -gcflags='-N -l'
fi
if has gdc market.d; then
    d_program market gdc-O2 -O2
    d_program market gdc-O3 -O3 $vector -frelease
fi
zig=zig
if python3 -m ziglang version >/dev/null 2>&1; then
    zig="python3 -m ziglang"
fi
if has ${zig%% *} arena.zig; then
    # What the library is called changes with each version.
    zig_program arena zig-fast -no-pie -O ReleaseFast && zig_program arena zig-safe -pie -O ReleaseSafe -fPIC ||
        echo "build.sh: this zig does not build arena.zig" >&2
fi
