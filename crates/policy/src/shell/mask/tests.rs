//! What is cut out of a text, and texts that are refused.

use super::*;

/// The masked text with digits for marks, and the pieces.
fn masked(text: &str) -> (String, Vec<Piece>) {
    let masked = mask(text).unwrap();
    let show = |c: char| match u32::from(c).checked_sub(FIRST_MARK) {
        Some(index) => char::from_digit(index, 10).unwrap(),
        None => c,
    };
    (masked.text.chars().map(show).collect(), masked.pieces)
}

fn command(text: &str) -> Piece {
    Piece::Command(text.to_owned())
}

#[test]
fn substitutions_are_cut_out_whole() {
    assert_eq!(
        masked("a $(b \")\" $(c)) d"),
        ("a 0 d".to_owned(), vec![command("b \")\" $(c)")])
    );
    assert_eq!(masked("\"x `y \\`z\\`` w\"").1, [command("y `z`")]);
    assert_eq!(masked("'$(no)' \\$(x)").1, []);
    assert_eq!(masked("$(a # )\nb)").1, [command("a # )\nb")]);
    assert_eq!(masked("a\\ #b; c # d\ne#f").0, "a\\ #b; c \ne#f");
    assert_eq!(
        masked("${x:-\"}\"}").1,
        [Piece::Parameter("x:-\"}\"".to_owned())]
    );
    assert_eq!(
        masked("$((1<<(2)))").1,
        [Piece::Arithmetic("1<<(2)".to_owned())]
    );
    assert_eq!(masked("$((a); (b))").1, [command("(a); (b)")]);
}

#[test]
fn here_documents_are_cut_out_with_their_bodies() {
    let body = |body: &str, expands| Piece::Document {
        body: body.to_owned(),
        expands,
    };
    let (text, pieces) = masked("cat <<A <<-'B' >f\n1\nA\n\t2\n\tB\nls");
    assert_eq!(text, "cat <<< 0 <<< 1 >f\nls");
    assert_eq!(pieces, [body("1\n", true), body("2\n", false)]);
    assert_eq!(masked("cat <<E\na\\\nE\nb\nE\n").1, [body("aE\nb\n", true)]);
    assert_eq!(
        masked("x \"$(cat <<'E'\nit's \" :)\nE\n)\"").1,
        [command("cat <<'E'\nit's \" :)\nE\n")]
    );
    assert_eq!(masked("((1<<E))\nls").0, "((1++E))\nls");
    assert_eq!(masked("( (ls) )").0, "( \n(ls) )");
}

#[test]
fn what_is_open_or_doubtful_is_refused() {
    for text in [
        "'",
        "\"",
        "`",
        "$(",
        "${",
        "$((",
        "$'",
        "cat <<E\n",
        "cat <<\nx",
        "cat <<$x\n$x\n",
        "cat <<'' \n\n",
        "$(cat <<E)",
        "cat <<E $(a\nb)\nE\n",
        "\"${x:-'}\"",
        "${x <<E\n}\nE\n}",
        "\\",
        "[[ x =~ (a)# ]]; rm y\n]]",
    ] {
        assert_eq!(mask(text).map(|m| m.text), Err(Unreadable), "{text}");
    }
}
