#!/bin/sh
# Installs the peer, perf of Debian sid with its objdump, below DIR/peer, as root with debootstrap.
# usage: peer.sh DIR [ROOT]       ROOT: a sid root that is there already
set -eu
dir=$1
root=${2:-$dir/peer/root}
mkdir -p "$dir/peer"
[ -x "$root/usr/bin/perf" ] ||
    nice -n 10 debootstrap --variant=minbase --include=linux-perf,binutils sid "$root"
# Its programs run on its own C library but see this system's files: a change of root would put sid's
# C library, another build than the one that was recorded, at the recorded path.
for program in perf objdump; do
    cat >"$dir/peer/$program" <<EOF
#!/bin/sh
exec $root/lib64/ld-linux-x86-64.so.2 --library-path $root/usr/lib/x86_64-linux-gnu \\
    $root/usr/bin/$program "\$@"
EOF
    chmod +x "$dir/peer/$program"
done
"$dir/peer/perf" --version
