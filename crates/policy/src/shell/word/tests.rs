//! Words as they are read: quotes, expansions, substitutions.

use super::*;

fn texts(source: &str) -> Vec<String> {
    let vars = Vars::from([("x".to_owned(), vec!["rm -rf".to_owned()])]);
    let reading = read(source, &[], &vars, Mode::Plain).unwrap();
    reading
        .words
        .into_iter()
        .map(|w| w.text.replace(UNKNOWN, "%"))
        .collect()
}

#[test]
fn quotes_are_removed() {
    assert_eq!(texts(r#"r"m"'x'\y"#), ["rmxy"]);
    assert_eq!(texts(r"$'\x72\155'"), ["rm"]);
    assert_eq!(texts("a\\\nb"), ["ab"]);
    assert_eq!(texts("''"), [""]);
}

#[test]
fn expansions_are_followed_or_left_open() {
    assert_eq!(texts("$x"), ["rm", "-rf"]);
    assert_eq!(texts("\"$x\""), ["rm -rf"]);
    assert_eq!(texts("${y:-curl}"), ["curl"]);
    assert_eq!(texts("cat$IFS/etc/shadow"), ["cat", "/etc/shadow"]);
    assert_eq!(texts("a$(id)b"), ["a%b"]);
    assert_eq!(texts("${x:0:2}"), ["rm"]);
    assert_eq!(texts("$(echo git)"), ["git"]);
}

#[test]
fn commands_of_substitutions_are_found_at_any_depth() {
    let vars = Vars::default();
    let of = |source: &str, mode| read(source, &[], &vars, mode).unwrap().commands;
    assert_eq!(of("\"a $(rm \")\" x) b\"", Mode::Plain), ["rm \")\" x"]);
    assert_eq!(of("${y:-$(id)}", Mode::Plain), ["id"]);
    assert_eq!(of("$((1 + $(id)))", Mode::Plain), ["id"]);
    assert_eq!(of("say `id` and \\`this\\`", Mode::Text), ["id"]);
    assert_eq!(
        of("\"$(cat <<'EOF'\nsay \"hi :) don't\nEOF\n)\"", Mode::Plain),
        ["cat <<'EOF'\nsay \"hi :) don't\nEOF\n"]
    );
}

#[test]
fn a_word_cut_wrongly_is_refused() {
    let refused = |source: &str| read(source, &[], &Vars::default(), Mode::Plain).is_err();
    assert!(refused(r"\$'a\'; rm x #'"));
    assert!(refused("a b"));
    assert!(refused("'open"));
    assert!(refused("${open"));
}
