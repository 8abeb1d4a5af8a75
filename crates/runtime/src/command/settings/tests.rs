//! Settings are text and back.

use super::*;

#[test]
fn sizes_and_times_are_read_as_people_write_them() {
    assert_eq!(parse_size("512m").unwrap(), 512 << 20);
    assert_eq!(parse_size("2GiB").unwrap(), 2 << 30);
    assert_eq!(parse_size("17").unwrap(), 17);
    for wrong in ["", "m", "0", "-1", "1.5g", "1x", "99999999999999t"] {
        assert!(parse_size(wrong).is_err(), "{wrong}");
    }
    assert_eq!(parse_duration("2m").unwrap(), Duration::from_secs(120));
    assert_eq!(parse_duration("250").unwrap(), Duration::from_millis(250));
    assert_eq!(parse_duration("1d").unwrap(), Duration::from_secs(86_400));
    for wrong in ["", "0", "5w", "s", "213503982335d"] {
        assert!(parse_duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn settings_are_text_and_back() {
    let mut settings = Settings::default();
    for (key, value) in [
        ("env.A", "b=c"),
        ("memory", "1g"),
        ("cpus", "0.5"),
        ("pids", "9"),
        ("disk", "10m"),
        ("nofile", "unlimited"),
        ("profile", "moderate"),
        ("timeout", "90s"),
        ("inspect.*.code.test", "GET,HEAD /org; * /own"),
        ("connections", "9"),
        ("bandwidth", "1m/s"),
        ("traffic", "1g"),
    ] {
        settings.set(&key.parse().unwrap(), value).unwrap();
    }
    let mut back = Settings::default();
    for (key, value) in settings.items() {
        let key: SettingKey = key.to_string().parse().unwrap();
        back.set(&key, &value).unwrap();
    }
    assert_eq!(back, settings);
    for wrong in ["env.", "env.A=B", "color", "", "inspect.", "inspect.a b"] {
        assert!(wrong.parse::<SettingKey>().is_err(), "{wrong}");
    }
    let cpus = SettingKey::Cpus;
    assert!(Settings::default().set(&cpus, "nan").is_err());
}
