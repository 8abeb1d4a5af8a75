//! The colours. They are removed where the output is not a terminal.

use anstyle::{AnsiColor, Style};
use std::fmt;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTABLE: Style = AnsiColor::Yellow.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();
const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// Text in one style.
pub struct Styled<T>(Style, T);

impl<T: fmt::Display> fmt::Display for Styled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.0.render(), self.1, self.0.render_reset())
    }
}

pub fn good<T: fmt::Display>(text: T) -> Styled<T> {
    Styled(GOOD, text)
}

pub fn bad<T: fmt::Display>(text: T) -> Styled<T> {
    Styled(BAD, text)
}

pub fn notable<T: fmt::Display>(text: T) -> Styled<T> {
    Styled(NOTABLE, text)
}

pub fn place<T: fmt::Display>(text: T) -> Styled<T> {
    Styled(PLACE, text)
}

pub fn strong<T: fmt::Display>(text: T) -> Styled<T> {
    Styled(STRONG, text)
}

pub fn faint<T: fmt::Display>(text: T) -> Styled<T> {
    Styled(FAINT, text)
}
