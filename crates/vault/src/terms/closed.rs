//! Types with a text of their own: closed enums that are stored as words, and ids.

/// A closed enum that is stored and shown as one lower-case word per variant.
macro_rules! words {
    ($(#[$doc:meta])* $type:ident, $what:literal, { $($(#[$note:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $($(#[$note])* $variant),+
        }

        impl $type {
            pub const ALL: &[$type] = &[$($type::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $($type::$variant => $word),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<$type> {
                match text {
                    $($word => Ok($type::$variant),)+
                    _ => Err($crate::Error::InvalidText { what: $what, text: text.to_owned() }),
                }
            }
        }
    };
}

pub(crate) use words;

/// An id is shown and read as what is inside it.
macro_rules! id_text {
    ($type:ident, $what:literal) => {
        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<$type> {
                match text.parse() {
                    Ok(inside) => Ok($type(inside)),
                    Err(_) => Err($crate::Error::InvalidText {
                        what: $what,
                        text: text.to_owned(),
                    }),
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

pub(crate) use id_text;
