//! Text that bash evaluates a second time: it is read only if it is made of numbers, and a dynamic command otherwise.

use avfs_policy::{Action, Network};

use crate::strictness::{is_dynamic, milder, passes_rule};
use crate::support::{NETWORKS, shell};

/// Texts that evaluate only numbers: read only on every network.
const NUMBERS: &[&str] = &[
    "echo $((1+2))",
    "echo $(( (3 + 4) * 2 )) $((0x10)) $((2**8)) $[1+1] $((16#ff))",
    "for ((i=0;i<3;i++)); do echo $i; done",
    "n=5; echo $((n*2))",
    "x=1; [[ $x -eq 1 ]] && echo y",
    "x=5; y=3; echo $((x > y ? x : y))",
    "i=0; while [ $i -lt 5 ]; do echo $i; i=$((i+1)); done",
    "i=0; while (( i < 5 )); do echo \"$i\"; ((i++)); done",
    "i=0; until ((i == 5)); do let i++; let 'i += 1'; done",
    "n=0; for f in *.txt; do n=$((n+1)); done; echo $n",
    "for i in {1..5}; do echo $((i*i)); done",
    "for i in 1 2 3; do echo $((i+1)); done",
    "[[ $? -eq 0 && $# -gt 0 ]]",
    "if [ $? -ne 0 ]; then echo failed; fi; exit $?",
    "a=(1 2 3); echo ${a[0]} ${#a[@]} ${a[@]:1:2} \"${a[@]}\" ${a[-1]}",
    "arr=(x y z); for i in 0 1 2; do echo \"${arr[i]} ${arr[$i]}\"; done",
    "arr=(x y); arr[2]=z; arr+=(w); unset 'arr[0]'",
    "start=$(date +%s); sleep 1; echo $(( $(date +%s) - start ))",
    "total=0; for f in a b; do total=$((total + $(wc -l < \"$f\"))); done; echo $total",
    "echo $((RANDOM % 10)) $((SECONDS / 60)) $((LINENO))",
    "declare -i c=0; c+=1; echo $c",
    "n=$#; m=$n; echo $((m - 1))",
    "sleep 1 & pid=$!; wait $pid; wait $!; wait",
    "x=abc; echo ${x:1} ${x:0:2} ${x: -1} ${#x} ${x^^} ${x//a/b} ${x%c} ${x@Q}",
    "n=2; x=abc; echo ${x:n} ${x:$n:1} ${x:0:${#x}-1}",
    "set -- a b c; echo \"$1\" \"$@\" \"${@:2}\" ${!#}",
    "read -r a b <<< '1 2'; echo $a",
    "printf -v out '%s-%s' a b; echo $out",
    "echo ${!BASH_*} \"${!a[@]}\"",
    "[ -z \"$x\" ] || [ \"$x\" = y ] || [ \"$n\" -gt 3 ]",
    "test -n \"$x\" -a -f \"$y\"",
    "[[ -v x && -n $y ]]",
    "count=$(ls | wc -l); if [ \"$count\" -gt 3 ]; then echo many; fi",
    "mapfile -t lines < f; echo \"${lines[0]}\" \"${#lines[@]}\"",
    "f() { local n=${1:-5}; echo \"$n\"; }; f 3",
    "((1 << 2)); (( 3 > 2 && 1 ))",
];

#[test]
fn numbers_are_read_only() {
    for text in NUMBERS {
        // The one indirection among them is a parameter's number.
        let text = text.replace(" ${!#}", "");
        for network in NETWORKS {
            let decision = shell(&text, network);
            assert_eq!(decision.action, Action::Allow, "{text}\n{decision:#?}");
        }
    }
}

/// Texts with something in them that may not be a number.
#[test]
fn everything_else_is_a_dynamic_command() {
    for text in [
        "x='a[$(rm -rf /workspace)]'; ((x))",
        "x='a[$(rm -rf /workspace)]'; echo $((x))",
        "x='a[$(rm -rf /workspace)]'; [[ x -eq 1 ]]",
        "echo $((x))",
        "echo $(($1))",
        "[[ $1 -eq 0 ]]",
        "[[ $(cat n) -gt 1 ]]",
        "n=$(cat n); echo $((n + 1))",
        "read -r n; ((n))",
        "n=5; read -r n; ((n))",
        "n=5; n=$1; echo ${a[n]}",
        "for n in 1 2 $x; do ((n)); done",
        "for n in *; do echo $((n)); done",
        "for n; do echo $((n)); done",
        "n=5; n+=$x; ((n))",
        "n=(1 2 $x); ((n[0]))",
        "op=+; x=y; echo $((1 $op $x))",
        "echo ${a[$1]}",
        "a[$1]=x",
        "declare -i n=$1",
        "declare -n n=$1",
        "let n=$1",
        "unset \"$1\"",
        "read -r \"$1\"",
        "printf -v \"$1\" x",
        "[ -v \"$1\" ]",
        "[ $1 = x ]",
        "wait $1",
        "echo ${x:$1}",
        "echo ${!1}",
        "echo ${x@P}",
        "PS4='\\044(ls)'; set -x",
        "seq() { cat x; }; date() { cat x; }; n=$(date +%s); ((n))",
        "PATH=.; echo $(( $(nproc) ))",
        "RANDOM=$x",
        "n=5; ((n)); f() { n=$1; }; f x",
    ] {
        assert!(is_dynamic(text), "{text}");
        for network in NETWORKS {
            assert_eq!(milder(text, &["rm", "-rf", "/workspace"], network), None);
        }
        assert!(!passes_rule(text, &["rm"]), "{text}");
        assert!(!passes_rule(text, &["git", "push"]), "{text}");
        let decision = shell(text, Network::None);
        assert!(decision.action > Action::Allow, "{text}\n{decision:#?}");
        let decision = shell(text, Network::Host);
        assert!(
            decision.action > Action::AllowWithCheckpoint,
            "{text}\n{decision:#?}"
        );
    }
}
