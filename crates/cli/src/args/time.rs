//! Lengths of time, as people write them: `1500ms`, `60s`, `5m`, `8h`, `30d`.

use avfs_runtime::parse_duration;
use std::time::Duration;

/// A length of time from the command line. What a number without a unit means is the option's own.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Time {
    length: Duration,
    has_unit: bool,
}

impl Time {
    /// In milliseconds.
    pub fn millis(self) -> u64 {
        u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX)
    }

    /// In whole seconds, rounded up: a short time is not none.
    pub fn seconds(self) -> u64 {
        let rest = u64::from(self.length.subsec_nanos() > 0);
        self.length.as_secs().saturating_add(rest)
    }

    /// Whether a unit was written.
    pub fn has_unit(self) -> bool {
        self.has_unit
    }
}

/// A time; a number alone is milliseconds.
pub fn in_millis(text: &str) -> Result<Time, String> {
    parse(text, Duration::from_millis(1))
}

/// A time; a number alone is seconds.
pub fn in_seconds(text: &str) -> Result<Time, String> {
    parse(text, Duration::from_secs(1))
}

/// A time; a number alone is days.
pub fn in_days(text: &str) -> Result<Time, String> {
    parse(text, Duration::from_secs(24 * 60 * 60))
}

fn parse(text: &str, unit: Duration) -> Result<Time, String> {
    let Ok(number) = text.trim().parse::<u64>() else {
        let length = parse_duration(text).map_err(|error| error.to_string())?;
        return Ok(Time {
            length,
            has_unit: true,
        });
    };
    let seconds = unit.as_secs().checked_mul(number);
    let length = match unit.as_secs() {
        0 => Some(Duration::from_millis(number)),
        _ => seconds.map(Duration::from_secs),
    };
    length
        .map(|length| Time {
            length,
            has_unit: false,
        })
        .ok_or_else(|| "that is too long".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_means_itself_everywhere_and_a_number_what_the_option_says() {
        for parse in [in_millis, in_seconds, in_days] {
            assert_eq!(parse("60s").unwrap().millis(), 60_000);
            assert_eq!(parse("5m").unwrap().seconds(), 300);
            assert_eq!(parse("2d").unwrap().seconds(), 172_800);
            assert!(parse("60s").unwrap().has_unit());
            assert!(!parse("60").unwrap().has_unit());
            assert_eq!(parse("0").unwrap().millis(), 0);
            for wrong in [
                "",
                "s",
                "-1",
                "1.5s",
                "5 m",
                "5x",
                "1e3",
                "99999999999999999999",
            ] {
                assert!(parse(wrong).is_err(), "{wrong}");
            }
        }
        assert_eq!(in_millis("60").unwrap().millis(), 60);
        assert_eq!(in_seconds("60").unwrap().millis(), 60_000);
        assert_eq!(in_days("1").unwrap().seconds(), 86_400);
        assert_eq!(in_millis("1").unwrap().seconds(), 1);
        assert!(in_days("18446744073709551615").is_err());
        assert_eq!(
            in_millis("18446744073709551615").unwrap().millis(),
            u64::MAX
        );
    }
}
