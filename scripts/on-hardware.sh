#!/bin/bash
# Accepts or refutes libhsa_serializer_tool.so on an AMD GPU, in ten minutes: docs/on-hardware.md.
#
#   scripts/on-hardware.sh [--quick] [--seconds N] [--out DIRECTORY] [--tool LIBRARY]
#
# Exit code 0: accepted, 1: refuted, 2: it could not be run.
set -u

seconds=60 out=on-hardware tool=
here=$(cd "$(dirname "$0")" && pwd)
while [ $# -gt 0 ]; do
    case $1 in
    --quick) seconds=2 ;;
    --seconds) seconds=$2 && shift ;;
    --out) out=$2 && shift ;;
    --tool) tool=$2 && shift ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" && exit 2 ;;
    esac
    shift
done

give_up() { echo "CAN'T RUN: $*" >&2 && exit 2; }
mkdir -p "$out" && out=$(cd "$out" && pwd) || give_up "no directory $out"
verdicts=$out/verdicts.txt
: >"$verdicts"

# ---- what is tested

if [ -z "$tool" ]; then
    (cd "$here/.." && cargo build --release -p hsa-serializer-tool) || give_up "the tool can't be built"
    target=$(cd "$here/.." && cargo metadata --no-deps --format-version 1 |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    tool=$target/release/libhsa_serializer_tool.so
fi
[ -f "$tool" ] || give_up "there is no $tool"

rocm=${ROCM_PATH:-/opt/rocm}
flags=(-std=c++17 -O2 -D__HIP_PLATFORM_AMD__ -pthread)
[ -d "$rocm/include/hip" ] && flags+=("-I$rocm/include" "-L$rocm/lib" "-Wl,-rpath,$rocm/lib")
load=$out/load
# Without a compiler for GPUs: the program compiles its kernels itself.
"${CXX:-c++}" "${flags[@]}" "$here/on-hardware.cpp" -o "$load" -lamdhip64 -ldl ||
    give_up "the load can't be compiled (HIP's headers and library are needed)"

{
    date -u
    uname -srm
    (cd "$here/.." && git rev-parse HEAD 2>/dev/null)
    cat "$rocm/.info/version" 2>/dev/null
    for library in libhsa-runtime64 libamdhip64; do
        ldconfig -p | grep "$library" || ls -l "$rocm/lib/$library"*
    done
    cat /sys/module/amdgpu/version 2>/dev/null
    rocminfo 2>/dev/null | grep -E 'Name:|Marketing|Node:|Queue Type'
} >"$out/versions.txt" 2>&1

"$load" probe >"$out/probe.txt" 2>&1 || {
    cat "$out/probe.txt"
    give_up "HIP finds no GPU that can be used (above), without any tool; docs/on-hardware.md, Without a GPU"
}
cat "$out/probe.txt"
# Then the load also checks what its kernels have computed.
grep -q '^kernels-are-run=1' "$out/probe.txt" && real=1 || real=0

# ---- how

verdict() { echo "$*" | tee -a "$verdicts"; }

# Runs the load under the tool: NAME, then variables, then -- and the load's arguments. What it says is in
# NAME.txt, its trace in NAME.csv. False, and said, where it hangs or fails.
run() {
    local name=$1 variables=()
    shift
    while [ "$1" != -- ]; do variables+=("$1") && shift; done
    shift
    env HSA_TOOLS_LIB="$tool" HSA_SERIALIZER_OUTPUT="$out/$name.csv" HSA_SERIALIZER_STALL_MS=5000 \
        "${variables[@]}" timeout -k 10 "$patience" "$load" "$@" >"$out/$name.txt" 2>&1
    local code=$?
    case $code in
    0) return 0 ;;
    124 | 137)
        if [ "$1" = rate ] && ! grep -q 'released' "$out/$name.txt"; then
            verdict "LOOK    $name: not at its end after $patience s, with no stall named: slow, or it hangs"
            return 1
        fi
        verdict "REFUTED $name: it hangs; $name.txt says who waits for whom"
        ;;
    *) verdict "REFUTED $name: exit code $code; the end of $name.txt: $(tail -n 1 "$out/$name.txt")" ;;
    esac
    return 1
}

# How many seconds a run may take.
patience=$((seconds * 3 + 60))

# Kernels that began before another one of their GPU had ended, by the trace.
side_by_side() {
    tail -n +2 "$out/$1.csv" | awk -F, '{ print $2 "," $(NF - 12) "," $(NF - 11) }' | sort -t, -k1,1 -k2,2n |
        awk -F, '$1 != agent { agent = $1; ended = 0 }
                 $2 < ended { found++ }
                 $3 > ended { ended = $3 }
                 END { print found + 0 }'
}

# A number of the summary that the tool leaves: NAME, and what stands before it.
said() { sed -n "s/^hsa-serializer: .*$2\([0-9][0-9]*\).*/\1/p" "$out/$1.txt" | head -n 1; }

# Whether the tool itself has found nothing wrong.
clean() {
    local overlaps released fault
    overlaps=$(said "$1" 'overlaps: ')
    released=$(grep -c 'stalls released' "$out/$1.txt")
    fault=$(grep -c 'FAULT' "$out/$1.txt")
    [ "$fault" = 0 ] || { verdict "REFUTED $1: the tool reports a fault of its own: $1.txt" && return 1; }
    if [ "$released" != 0 ]; then
        verdict "LOOK    $1: something stood still for 5 s, and was let go: $1.txt says what"
    elif [ "${overlaps:-none}" != 0 ]; then
        verdict "REFUTED $1: ${overlaps:-no} overlaps beside serialized kernels" && return 1
    fi
}

# ---- the tests

# Otherwise what follows shows nothing.
if run paused HSA_SERIALIZER_PAUSED=1 -- work "$(((seconds + 1) / 2))" 1; then
    together=$(side_by_side paused)
    if [ "$together" -gt 0 ]; then
        verdict "passed  paused: $together kernels ran side by side, as they do without serializing"
    else
        verdict "LOOK    paused: no kernels ran side by side, so that serializing them shows nothing"
    fi
fi

if run serialized -- work "$seconds" 1 && clean serialized; then
    together=$(side_by_side serialized)
    kernels=$(said serialized 'kernels: ')
    if [ "$together" = 0 ]; then
        verdict "passed  serialized: $kernels kernels, one at a time"
    elif [ $((together * 100)) -lt "$kernels" ]; then
        # By the GPU's own clock none did: the runtime corrects its conversion of that clock now and then.
        verdict "passed  serialized: $kernels kernels, one at a time; the trace's times of $together are askew"
    else
        verdict "REFUTED serialized: $together of $kernels kernels ran side by side"
    fi
fi

# The handles of transitions' signals come back at once: the fault that this crate ends shows as a hang here, after
# some tens of transitions.
for period in 10000 1000 100 20; do
    name=toggled-$period
    if run "$name" HSA_SERIALIZER_TOGGLE_US=$period -- work "$seconds" 1 && clean "$name"; then
        verdict "passed  $name: $(said "$name" 'transitions: ') transitions under $(said "$name" 'kernels: ') kernels"
    fi
done

# Each stream has a queue of its own: sharing them is of what a transition can deadlock (docs/integrating.md).
if run threads GPU_MAX_HW_QUEUES=16 HSA_SERIALIZER_TOGGLE_US=1000 -- work "$seconds" 2 && clean threads; then
    verdict "passed  threads: $(said threads 'transitions: ') transitions under $(said threads 'kernels: ') kernels"
fi

if [ "$real" = 0 ]; then
    verdict "SKIPPED stall: no kernels are run here"
elif run stall HSA_SERIALIZER_STALL_MS=500 -- stall; then
    if grep -q 'stalls released' "$out/stall.txt"; then
        verdict "passed  stall: two kernels that need each other were let go"
    else
        verdict "LOOK    stall: two kernels that need each other ended, and nothing had to be let go"
    fi
fi

# It has so many kernels, whatever these take: as long as without the tool, ten times over.
SECONDS=0
"$load" rate >"$out/rate-bare.txt" 2>&1 || verdict "LOOK    rate: the load fails without the tool"
patience=$((patience + SECONDS * 10))
run rate-paused HSA_SERIALIZER_PAUSED=1 -- rate
run rate-serialized -- rate
for streams in 1 4; do
    each=
    for kind in bare paused serialized; do
        each="$each $kind $(sed -n "s/^us-per-kernel-$streams-streams=//p" "$out/rate-$kind.txt")"
    done
    verdict "FIGURE  microseconds for a short kernel, $streams streams:$each"
done

# ---- what to send back

rm -f "$load"
# Whose directory it is is nobody's business.
sed -i -e "s|$out|.|g" -e "s|$PWD|CLONE|g" -e "s|${HOME:-/nowhere}/|HOME/|g" "$out"/*.txt
gzip -f "$out"/*.csv
(cd "$out" && tar czf results.tar.gz ./*.txt serialized.csv.gz)
echo "Please send back $out/results.tar.gz (docs/on-hardware.md)"
[ "$real" = 1 ] || echo "This GPU is emulated: nothing is accepted by that."
! grep -q '^REFUTED' "$verdicts"
