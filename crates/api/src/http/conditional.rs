//! Conditions and ranges of reads (RFC 9110, sections 13 and 14).

use crate::ops::content::tags;
use crate::ops::failure::Failure;
use axum::http::HeaderMap;
use axum::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE};
use std::ops::Range;

/// What a reader gets of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// The reader has it already.
    NotModified,
    Some(Range<u64>),
    /// There is no such range.
    Nothing,
}

/// Decides by the headers of a read. A file without a tag fits only `*`, and is never sent in ranges on a condition.
pub(crate) fn judge(headers: &HeaderMap, tag: Option<&str>, size: u64) -> Result<Part, Failure> {
    let fits = |name: HeaderName| -> Result<Option<bool>, Failure> {
        let Some(listed) = listed(headers, &name) else {
            return Ok(None);
        };
        Ok(Some(tags(&listed)?.fit(tag.unwrap_or_default())))
    };
    if fits(IF_MATCH)? == Some(false) {
        return Err(Failure::condition_failed("the file has other content"));
    }
    if fits(IF_NONE_MATCH)? == Some(true) {
        return Ok(Part::NotModified);
    }
    // A date, which is never ours, makes the range void as another tag does.
    let if_range = listed(headers, &IF_RANGE);
    let unchanged = if_range.is_none_or(|it| tag.is_some_and(|tag| it == format!("\"{tag}\"")));
    let range = headers.get(RANGE).filter(|_| unchanged);
    let range = range.and_then(|it| it.to_str().ok());
    Ok(range.map_or(Part::Whole, |range| part(range, size)))
}

/// The values of all headers of this name.
fn listed(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values: Vec<_> = headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// One range of bytes. Several at once, another unit, or what makes no sense is answered with the whole.
fn part(range: &str, size: u64) -> Part {
    let Some((first, last)) = range
        .strip_prefix("bytes=")
        .and_then(|it| it.trim().split_once('-'))
    else {
        return Part::Whole;
    };
    let number = |text: &str| match text.is_empty() {
        true => Some(None),
        false => digits(text).map(Some),
    };
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Part::Whole;
    };
    let wanted = match (first, last) {
        (None, None) => return Part::Whole,
        (None, Some(count)) => size.saturating_sub(count)..size,
        (Some(first), None) => first..size,
        (Some(first), Some(last)) if last < first => return Part::Whole,
        (Some(first), Some(last)) => first..size.min(last.saturating_add(1)),
    };
    match wanted.is_empty() {
        true => Part::Nothing,
        false => Part::Some(wanted),
    }
}

/// A number of digits alone; one that is too large is beyond every file.
fn digits(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn judged(pairs: &[(HeaderName, &'static str)]) -> Result<Part, u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_static(value));
        }
        judge(&headers, Some("t"), 10).map_err(|failure| failure.problem().status)
    }

    #[test]
    fn ranges_are_those_of_the_rfc() {
        for (range, part) in [
            ("bytes=0-0", Part::Some(0..1)),
            ("bytes=2-4", Part::Some(2..5)),
            ("bytes=2-", Part::Some(2..10)),
            ("bytes=2-99", Part::Some(2..10)),
            ("bytes=2-99999999999999999999999", Part::Some(2..10)),
            ("bytes=-3", Part::Some(7..10)),
            ("bytes=-99", Part::Some(0..10)),
            ("bytes=10-", Part::Nothing),
            ("bytes=-0", Part::Nothing),
            ("bytes=99999999999999999999999-", Part::Nothing),
            ("bytes=4-2", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("lines=1-2", Part::Whole),
            ("", Part::Whole),
        ] {
            assert_eq!(judged(&[(RANGE, range)]), Ok(part), "{range}");
        }
        assert_eq!(super::part("bytes=0-", 0), Part::Nothing);
    }

    #[test]
    fn conditions_come_before_ranges() {
        let range = (RANGE, "bytes=0-1");
        for (more, part) in [
            ((IF_MATCH, "\"t\""), Ok(Part::Some(0..2))),
            ((IF_MATCH, "*"), Ok(Part::Some(0..2))),
            ((IF_MATCH, "\"x\""), Err(412)),
            ((IF_MATCH, "W/\"t\""), Err(412)),
            ((IF_MATCH, "\"x"), Err(400)),
            ((IF_NONE_MATCH, "\"t\""), Ok(Part::NotModified)),
            ((IF_NONE_MATCH, "*"), Ok(Part::NotModified)),
            ((IF_NONE_MATCH, "\"x\", \"y\""), Ok(Part::Some(0..2))),
            ((IF_RANGE, "\"t\""), Ok(Part::Some(0..2))),
            ((IF_RANGE, "\"x\""), Ok(Part::Whole)),
            ((IF_RANGE, "Mon, 02 Jan 2006 15:04:05 GMT"), Ok(Part::Whole)),
        ] {
            assert_eq!(judged(&[range.clone(), more.clone()]), part, "{more:?}");
        }
    }
}
