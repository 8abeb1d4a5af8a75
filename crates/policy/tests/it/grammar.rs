//! Generates shell texts that run a command in a hidden way: a way to assign a variable, a place where bash evaluates
//! or runs it, and constructs around both.

use crate::support::Random;

/// Commands of every strictness.
pub const COMMANDS: &[&str] = &[
    "touch made",
    "rm -rf victim",
    "curl http://x",
    "git push -f",
    "mount -t proc p q",
];

/// Ways to give `VAR` the text `TEXT`, which has no quotes.
const ASSIGNMENTS: &[&str] = &[
    "VAR='TEXT'",
    "VAR=$'TEXT'",
    "VAR=''TEXT_Q''",
    "VAR=$'TEXT_X'",
    "VAR=\"TEXT_D\"",
    "VAR=TEXT_E",
    "declare VAR='TEXT'",
    "typeset VAR='TEXT'",
    "export VAR='TEXT'",
    "declare -g VAR='TEXT'",
    "declare -x 'VAR=TEXT'",
    "printf -v VAR %s 'TEXT'",
    "printf -vVAR '%s' 'TEXT'",
    "read -r VAR <<< 'TEXT'",
    "IFS= read -r VAR <<'E'\nTEXT\nE\n",
    "mapfile -t VAR <<< 'TEXT'",
    "readarray -t VAR <<< 'TEXT'",
    "VAR=('TEXT')",
    "VAR[0]='TEXT'",
    "VAR=; VAR+='TEXT'",
    "VAR=1; VAR='TEXT'",
    ": ${VAR:='TEXT'}",
    ": \"${VAR:=TEXT_D}\"",
    "for VAR in 'TEXT'; do :; done",
    "for VAR in 1 2 'TEXT'; do :; done",
    "set -- 'TEXT'; VAR=$1",
    "set -- 'TEXT'; VAR=\"$@\"",
    "f() { VAR=$1; }; f 'TEXT'",
    "f() { VAR='TEXT'; }; f",
    "VAR=$(printf %s 'TEXT')",
    "VAR=`printf %s 'TEXT_B'`",
    "w='TEXT'; VAR=$w",
    "w='TEXT'; VAR=\"$w\"",
    "w='TEXT'; VAR=${w}",
    "w=('TEXT'); VAR=${w[0]}",
    "true && VAR='TEXT'",
    "false || VAR='TEXT'",
    "! VAR='TEXT'",
    "{ VAR='TEXT'; }",
    "if true; then VAR='TEXT'; fi",
    "case x in x) VAR='TEXT';; esac",
    "eval \"VAR='TEXT_D'\"",
    "shopt -s lastpipe; printf '%s\\n' 'TEXT' | read -r VAR",
    "while read -r VAR; do break; done <<< 'TEXT'",
    "VAR=x; while [ \"$VAR\" = x ]; do VAR='TEXT'; done",
    "getopts a: OPT -a 'TEXT'; VAR=$OPTARG",
    "coproc { :; }; VAR='TEXT'",
];

/// Places where bash evaluates `VAR`, or something with its name in it, as arithmetic, a name or a prompt.
const EVALUATIONS: &[&str] = &[
    "((VAR))",
    "(( 1 + VAR ))",
    "((VAR++))",
    "((VAR += 1))",
    "(( y = VAR ))",
    "((1 ? VAR : 0))",
    "(( $VAR ))",
    "(( \"$VAR\" ))",
    "(( ${VAR} > 1 ))",
    "echo $((VAR))",
    "echo \"$((VAR + 1))\"",
    "echo $(( $VAR ))",
    "echo $[VAR]",
    "echo $[ $VAR ]",
    "y=$((VAR))",
    "y=VAR; ((y))",
    "y=VAR; z=y; echo $((z))",
    "y='VAR + 1'; ((y))",
    "let VAR",
    "let y=VAR",
    "let \"y = VAR + 1\"",
    "let \"$VAR\"",
    "let y=$VAR",
    "[[ VAR -eq 1 ]]",
    "[[ 1 -ne VAR ]]",
    "[[ $VAR -lt 1 ]]",
    "[[ 1 -le \"$VAR\" ]]",
    "[[ -n x && VAR -gt 1 ]]",
    "[[ ! ( VAR -ge 1 ) ]]",
    "[[ -v $VAR ]]",
    "[[ -v \"$VAR\" ]]",
    "test -v \"$VAR\"",
    "[ -v \"$VAR\" ]",
    "[ ! -v \"$VAR\" ]",
    "o=-v; [ \"$o\" \"$VAR\" ]",
    "for ((i = VAR; i < 1; i++)); do break; done",
    "for ((i = 0; VAR; i++)); do break; done",
    "for ((i = 0; i < 1; i += 1 + VAR)); do :; done",
    "declare -i y; y=VAR",
    "declare -i y; y=$VAR",
    "declare -i y=VAR",
    "declare -i y=$VAR",
    "declare -i y; y+=VAR",
    "typeset -i y=$VAR",
    "declare -ai y; y=($VAR)",
    "declare -i y; read -r y <<< \"$VAR\"",
    "declare -i y; for y in \"$VAR\"; do :; done",
    "declare -i y; printf -v y %s \"$VAR\"",
    "f() { local -i y=$VAR; }; f",
    "f() { local -i y; y=$1; }; f \"$VAR\"",
    "declare -n y=VAR; ((y))",
    "declare -n y=VAR; echo ${b[y]}",
    "declare -n y=$VAR; echo \"$y\"",
    "echo ${b[VAR]}",
    "echo \"${b[$VAR]}\"",
    "echo ${b[VAR]:-x}",
    "b=(1 2); echo ${#b[VAR]}",
    "b=(1 2); echo ${b[@]:VAR}",
    "b=(1 2); echo \"${b[@]:0:VAR}\"",
    "b[VAR]=1",
    "b[$VAR]=1",
    "b=([VAR]=1)",
    "b+=([VAR]=1)",
    "declare -a b=([VAR]=1)",
    "declare \"$VAR=1\"",
    "f() { local \"$VAR=1\"; }; f",
    "read -r \"$VAR\" <<< 1",
    "printf -v \"$VAR\" %s 1",
    "o=-v; printf \"$o\" \"$VAR\" %s 1",
    "a=(1); unset \"$VAR\"",
    "b=(1); unset 'b[VAR]'",
    "b=(1); unset \"b[$VAR]\"",
    "true & wait -p \"$VAR\" $!",
    "true & wait -n \"-p$VAR\"",
    "s=abc; echo ${s:VAR}",
    "s=abc; echo \"${s:0:VAR}\"",
    "s=abc; echo ${s:$VAR}",
    "set -- p q; echo ${@:VAR}",
    "echo ${!VAR}",
    "echo \"${!VAR:-x}\"",
    "echo ${!VAR@Q}",
    "echo ${VAR@P}",
    "echo \"${VAR@P}\"",
    "declare -a b=(1); echo \"${!b[VAR]}\"",
    "exec {b[VAR]}>/dev/null",
    ": {b[VAR]}</dev/null",
    "RANDOM=$VAR",
    "OPTIND=$VAR",
    "HISTCMD=VAR",
    "SRANDOM=$VAR",
    "DIRSTACK[VAR]=1",
    "while ((VAR)); do break; done",
    "until (( ! VAR )); do break; done",
    "if ((VAR)); then :; fi",
    "((VAR)) && :",
    "case $((VAR)) in *) ;; esac",
    "cat_() { :; }; cat_ <<E\n$((VAR))\nE\n",
    ": <<< $((VAR))",
    ": > /dev/null$((VAR))",
    "PS4='${VAR@P}'; set -x; :; set +x",
    "PS4='$((VAR))'; set -x; :; set +x",
    "bash -c '((VAR))'",
    "bash -c '(($1))' _ \"$VAR\"",
    "bash -c \"(($VAR))\"",
    "env y=\"$VAR\" bash -c '((y))'",
    "y=$VAR bash -c '((y))'",
    "declare -A m; m[k]=$VAR; ((m[k]))",
    "declare -A m; y=${m[k]:-$VAR}; ((y))",
    "y=${q:-$VAR}; ((y))",
    "y=${VAR/z/}; ((y))",
    "y=${VAR@Q}; eval \"((${y//\\'/}))\"",
    "(( ${q:-$VAR} ))",
    "(( ${q:-VAR} ))",
    "(( ${q:=VAR} ))",
    "b=(VAR 2); ((b))",
    "b=(VAR 2); ((b[0]))",
    "b=($VAR); ((${b[0]}))",
    "local_() { local y=$1; ((y)); }; local_ \"$VAR\"",
    "select_=VAR; (( select_ ))",
    "((1)); [[ $((VAR)) == 0 ]]",
    "[[ -z $((VAR)) || 1 -eq 1 ]]",
    "eval '((VAR))'",
    "eval \"((\\$VAR))\"",
    "eval \"(($VAR))\"",
    "trap '((VAR))' EXIT",
    "bash <<< '((VAR))'",
    "f() { ((VAR)); }; f",
    "f() { (($1)); }; f \"$VAR\"",
    "f() { (($1)); }; f VAR",
    "(export VAR; bash -c 'echo $((VAR))')",
    "compgen -W '$((VAR))'",
    "echo {1..2}$((VAR))",
    "shopt -s extglob; [[ VAR -eq 1 ]]",
    "x2=(1); ((x2[VAR]))",
    "((b[VAR]=1))",
    "((1 || 0)); ((0 || VAR))",
];

/// Places where bash runs the text of `VAR`.
const EXECUTIONS: &[&str] = &[
    "$VAR",
    "command $VAR",
    "eval \"$VAR\"",
    "eval $VAR",
    "builtin eval \"$VAR\"",
    "bash -c \"$VAR\"",
    "bash -c 'eval \"$1\"' _ \"$VAR\"",
    "export VAR; bash -c 'eval \"$VAR\"'",
    "bash <<< \"$VAR\"",
    "bash <<E\n$VAR\nE\n",
    "bash -s <<< \"$VAR\"",
    "printf '%s\\n' \"$VAR\" | bash",
    "bash <(printf '%s\\n' \"$VAR\")",
    ". <(printf '%s\\n' \"$VAR\")",
    "source /dev/stdin <<< \"$VAR\"",
    "trap \"$VAR\" EXIT",
    "trap '$VAR' EXIT",
    "trap 'eval \"$VAR\"' DEBUG; :",
    "trap \"$VAR\" ERR; false",
    "(trap \"$VAR\" RETURN; f() { :; }; f; $VAR)",
    "echo $($VAR)",
    "echo \"$(eval \"$VAR\")\"",
    "echo `$VAR`",
    "(exec $VAR)",
    "c=${VAR%% *}; \"$c\" ${VAR#* }",
    "y=VAR; ${!y}",
    "y=VAR; eval \"\\$$y\"",
    "b=($VAR); \"${b[@]}\"",
    "b=($VAR); ${b[*]}",
    "set -- $VAR; \"$@\"",
    "set -- $VAR; $1 \"${@:2}\"",
    "f() { \"$@\"; }; f $VAR",
    "f() { $1; }; f \"$VAR\"",
    "f() { eval \"$1\"; }; f \"$VAR\"",
    "mapfile -C \"$VAR #\" -c 1 q <<< z",
    "mapfile -c 1 -C 'eval \"$VAR\" #' q <<< z",
    "compgen -C \"$VAR #\" z",
    "compgen -W \"\\$($VAR)\"",
    "shopt -s expand_aliases; alias al=\"$VAR\"\neval al",
    "PS4=\"\\$($VAR)\"; set -x; :; set +x",
    "PS4='$(eval \"$VAR\")'; set -x; :; set +x",
    "p=\"\\$($VAR)\"; echo \"${p@P}\"",
    "BASH_ENV=<(printf '%s\\n' \"$VAR\") bash -c :",
    "jobs -x $VAR",
    "c=${VAR%% *}; shopt -s expand_aliases; alias al=\"$c\"\neval \"al ${VAR#* }\"",
    "c=${VAR%% *}; BASH_ALIASES[al]=$c; shopt -s expand_aliases\neval \"al ${VAR#* }\"",
    "c=${VAR%% *}; hash -p \"$(type -P $c)\" hh; hh ${VAR#* }",
    "c=${VAR%% *}; BASH_CMDS[hh]=$(type -P $c); hh ${VAR#* }",
    "c=${VAR%% *}; g2() { $c \"$@\"; }; g2 ${VAR#* }",
    "command ${VAR} -v",
    "coproc $VAR; wait",
    "{ $VAR; } 2>/dev/null | :",
    "if $VAR; then :; fi",
    "while $VAR; do break; done",
    "until $VAR; do break; done",
    "case $($VAR) in *) ;; esac",
    "for i in 1; do $VAR; done",
    "for ((i=0;i<1;i++)); do eval \"$VAR\"; done",
    ": <($VAR)",
    "read -r q < <($VAR)",
    "$VAR & wait",
    "! $VAR",
    "time $VAR",
    "[[ -n $($VAR) ]]",
    "b=([$($VAR)0]=1)",
    "echo ${q:-$($VAR)}",
    "echo $(( $($VAR) 1 ))",
    "env $VAR",
    "env bash -c \"$VAR\"",
    "xargs -n 9 <<< \"$VAR\" env",
    "nice $VAR",
    "timeout 5 $VAR",
];

/// Constructs around a text, `BODY`.
const AROUND: &[&str] = &[
    "BODY",
    "BODY",
    "BODY",
    ":; BODY",
    "( BODY )",
    "{ BODY\n}",
    "if :; then BODY\nfi",
    "for _ in 1; do BODY\ndone",
    "while :; do BODY\nbreak; done",
    "g() { BODY\n}; g",
    "g() ( BODY\n)\ng",
    "case x in x) BODY\n;; esac",
    "echo \"$(BODY\n)\"",
    ": <(BODY\n)",
    "eval \"$(command cat <<'END'\nBODY\nEND\n)\"",
    "bash <<'END'\nBODY\nEND\n",
    "true && { BODY\n}",
    "{ BODY\n} > /dev/null 2>&1",
    "set -e\nBODY\n",
    "set -u\nBODY\n",
];

/// Texts in which a loop, a function or a branch runs a value that is set elsewhere.
const FLOWS: &[&str] = &[
    "x=:; for i in 1 2; do $x; x='CMD'; done",
    "x=:; for i in 1 2; do eval \"$x\"; x='CMD'; done",
    "x=:; i=0; while [ $i -lt 2 ]; do $x; x='CMD'; i=$((i+1)); done",
    "x=:; f() { $x; }; x='CMD'; f",
    "x=:; f() { eval \"$x\"; }; x='CMD'; f",
    "x=:; trap '$x' EXIT; x='CMD'",
    "x=1; f() { ((x)); }; x='a[$(CMD)]'; f",
    "x=1; for i in 1 2; do ((x)); x='a[$(CMD)]'; done",
    "x=1; y=1; for i in 1 2 3; do ((x)); x=$y; y='a[$(CMD)]'; done",
    "x=:; y=:; for i in 1 2 3; do $x; x=$y; y='CMD'; done",
    "if true; then x='CMD'; else x=:; fi; $x",
    "if true; then x='CMD'; else x=:; fi; eval \"$x\"",
    "if true; then x='CMD'; else x=:; fi; bash -c \"$x\"",
    "x='CMD'; if false; then x=:; fi; $x",
    "x='CMD'; false && x=:; eval $x",
    "x='CMD'; (x=:); $x",
    "x='CMD'; : $(x=:); $x",
    "x='CMD'; f() { local x=:; }; f; $x",
    "x='CMD'; if false; then for x in :; do :; done; fi; $x",
    "x='CMD'; if false; then read -r x; fi; $x",
    "x='CMD'; ${x:-:}",
    "x='CMD'; ${x-:} ",
    "x=''; ${x:-CMD}",
    "${x:+:} CMD",
    "x=1; ${x:+CMD}",
    "x='a[$(CMD)]'; if false; then x=1; fi; ((x))",
    "x='a[$(CMD)]'; false && x=1; echo $((x))",
    "x='a[$(CMD)]'; (x=1); echo ${b[x]}",
    "(x='a[$(CMD)]'; ((x))); x=1",
    "x=1; [[ x -eq 1 ]]; x='a[$(CMD)]'; [[ x -eq 1 ]]",
    "nproc() { printf %s 'a[$(CMD)]'; }; echo $(( $(nproc) ))",
    "wc() { printf %s 'a[$(CMD)]'; }; n=$(wc -l < /dev/null); ((n))",
    "x=1; x+='+a[$(CMD)]'; ((x))",
    "x=a; y='[$(CMD)]'; z=$x$y; ((z))",
    "a1='q[$(CMD)]'; n=1; ((a$n))",
    "x='a[$(CMD)]'; y=x; declare -n z=y; ((z))",
    "for x in : : : : : : : : : 'CMD'; do :; done; $x",
    "for x in 'CMD' : : : : : : : : : :; do $x; done",
    "x=; for c in 'CMD'; do x+=$c; done; eval \"$x\"",
    "read -r x <<< ' '; x+='CMD'; $x",
    "if true; then x='CMD'; else x=:; fi; x+=' x'; $x",
    "x=; for i in 1 2; do eval \"$x\"; x+='CMD '; done",
    "x=$#; x+=';CMD'; eval \"$x\"",
    "b=(: 'CMD'); for i in 0 1; do ${b[i]}; done",
    "b=('CMD'); for x in \"${b[@]}\"; do $x; done",
];

/// A template with its variable and its text filled in.
fn filled(template: &str, variable: &str, text: &str) -> String {
    let quoted: String = text.chars().map(|c| format!("'{c}'")).collect();
    let escaped: String = text.chars().map(|c| format!("\\{c}")).collect();
    let doubled = text.replace('$', "\\$");
    let back = text.replace('$', "\\$");
    template
        .replace("TEXT_X", &text.replace('$', "\\x24").replace('[', "\\133"))
        .replace("TEXT_E", &escaped)
        .replace("TEXT_Q", &quoted)
        .replace("TEXT_D", &doubled)
        .replace("TEXT_B", &back)
        .replace("TEXT", text)
        .replace("VAR", variable)
}

/// Text that runs the command when it is evaluated as arithmetic, a name or a prompt.
fn subscript(command: &str) -> String {
    format!("a[$({command})]")
}

/// One text that runs the command.
pub fn text(random: &mut Random, command: &str) -> String {
    if random.next().is_multiple_of(12) {
        return random.pick(FLOWS).replace("CMD", command);
    }
    let variable = random.pick(&["x", "var", "_v", "X9"]);
    let (value, place) = match random.next() % 5 < 3 {
        true => (subscript(command), random.pick(EVALUATIONS)),
        false => (command.to_owned(), random.pick(EXECUTIONS)),
    };
    let body = joined(random.pick(ASSIGNMENTS), place, variable, &value);
    let once = random.pick(AROUND).replace("BODY", &body);
    match random.next().is_multiple_of(3) {
        true => random.pick(AROUND).replace("BODY", &once),
        false => once,
    }
}

fn joined(assignment: &str, place: &str, variable: &str, value: &str) -> String {
    let assignment = filled(assignment, variable, value);
    let joint = if assignment.ends_with('\n') { "" } else { "; " };
    format!("{assignment}{joint}{}", filled(place, variable, value))
}

/// This many different texts that run the command. Every line of the lists above is used at least once. A seed always
/// gives equal texts.
pub fn texts(count: usize, seed: u64, command: &str) -> Vec<String> {
    let mut random = Random(seed);
    let mut texts: Vec<String> = FLOWS
        .iter()
        .map(|flow| flow.replace("CMD", command))
        .collect();
    let value = subscript(command);
    let first = ASSIGNMENTS[0];
    texts.extend(
        EVALUATIONS
            .iter()
            .map(|place| joined(first, place, "x", &value)),
    );
    texts.extend(
        EXECUTIONS
            .iter()
            .map(|place| joined(first, place, "x", command)),
    );
    for assignment in ASSIGNMENTS {
        texts.push(joined(assignment, "((x))", "x", &value));
        texts.push(joined(assignment, "eval \"$x\"", "x", command));
    }
    for around in AROUND {
        let body = joined(first, "echo ${b[x]}", "x", &value);
        texts.push(around.replace("BODY", &body));
    }
    texts.sort_unstable();
    texts.dedup();
    while texts.len() < count {
        let text = text(&mut random, command);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}
