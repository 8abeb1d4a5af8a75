//! The arguments of a command: a list that is refused as soon as it is too long, because many short ones take much more
//! memory than their text.

use avfs_runtime::bounds::WORDS_MAX;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// Reads a list of at most as many arguments as a command can have.
pub(super) fn bounded<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(Words(PhantomData))
}

/// As [`bounded`], for an optional list.
pub(super) fn bounded_if_any<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_option(Maybe(PhantomData))
}

struct Words<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Words<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of words")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = list.next_element()? {
            if words.len() == WORDS_MAX {
                return Err(A::Error::custom(format!(
                    "too many words: {WORDS_MAX} are the most"
                )));
            }
            words.push(word);
        }
        Ok(words)
    }
}

struct Maybe<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Maybe<T> {
    type Value = Option<Vec<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of words, or nothing")
    }

    fn visit_none<E>(self) -> Result<Option<Vec<T>>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Vec<T>>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, list: D) -> Result<Option<Vec<T>>, D::Error> {
        bounded(list).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Exec;

    fn exec(words: usize) -> serde_json::Result<Exec> {
        let list = vec!["\"\""; words].join(",");
        serde_json::from_str(&format!("{{\"argv\":[{list}],\"argv_b64\":[{list}]}}"))
    }

    #[test]
    fn a_list_of_words_is_given_up_when_it_is_too_long() {
        let fits = exec(WORDS_MAX).unwrap();
        assert_eq!(fits.argv.len(), WORDS_MAX);
        assert_eq!(fits.argv_b64.map(|words| words.len()), Some(WORDS_MAX));
        let error = exec(WORDS_MAX + 1).unwrap_err().to_string();
        assert!(error.contains(&WORDS_MAX.to_string()), "{error}");
        let none: Exec = serde_json::from_str("{\"argv_b64\":null}").unwrap();
        assert!(none.argv.is_empty() && none.argv_b64.is_none());
    }
}
