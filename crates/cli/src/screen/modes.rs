//! What a program switched on in the terminal that shows its output, so that it can be switched off again.

use std::collections::BTreeSet;

/// Modes that are off in a terminal of a shell, and on while a full-screen program uses it: cursor keys, mouse, focus,
/// paste, and the other screen. The screen is last, because leaving it restores the cursor.
const OFF: [u16; 13] = [
    1, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 2004, 47, 1047, 1049,
];
/// Modes that are on: wrapping lines, and a visible cursor.
const ON: [u16; 2] = [7, 25];
/// No sequence that counts is longer.
const LONGEST: usize = 64;

/// Follows the output of a program, in pieces of any size.
#[derive(Debug, Default)]
pub struct Modes {
    /// The part of an escape sequence at the end of the last piece, without its ESC.
    pending: Option<Vec<u8>>,
    /// Modes of [`OFF`] that are on, and of [`ON`] that are off.
    changed: BTreeSet<u16>,
    /// Whether the numeric keys send sequences.
    keypad: bool,
    /// Whether only a part of the screen scrolls.
    region: bool,
    /// Whether text may be coloured.
    coloured: bool,
}

impl Modes {
    pub fn see(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (&mut self.pending, *byte) {
                (_, 0x1b) => self.pending = Some(Vec::new()),
                (None, _) => {}
                (Some(sequence), byte) => {
                    sequence.push(byte);
                    if is_complete(sequence) {
                        let sequence = std::mem::take(sequence);
                        self.pending = None;
                        self.apply(&sequence);
                    } else if sequence.len() > LONGEST {
                        self.pending = None;
                    }
                }
            }
        }
    }

    fn apply(&mut self, sequence: &[u8]) {
        match sequence {
            b"=" => self.keypad = true,
            b">" => self.keypad = false,
            // A full reset.
            b"c" => *self = Modes::default(),
            [b'[', b'?', numbers @ .., end @ (b'h' | b'l')] => {
                for number in numbers.split(|byte| *byte == b';') {
                    let number = std::str::from_utf8(number).ok();
                    if let Some(number) = number.and_then(|number| number.parse().ok()) {
                        self.set(number, *end == b'h');
                    }
                }
            }
            [b'[', b'm'] | [b'[', b'0', b'm'] => self.coloured = false,
            [b'[', .., b'm'] => self.coloured = true,
            [b'[', b'r'] => self.region = false,
            [b'[', b'0'..=b'9', .., b'r'] => self.region = true,
            _ => {}
        }
    }

    fn set(&mut self, mode: u16, on: bool) {
        let usual = ON.contains(&mode);
        if !usual && !OFF.contains(&mode) {
            return;
        }
        match on == usual {
            true => drop(self.changed.remove(&mode)),
            false => drop(self.changed.insert(mode)),
        }
    }

    /// What makes the terminal as it was; empty if nothing was changed.
    pub fn undo(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.pending.is_some() {
            // CAN ends a sequence that was cut off.
            bytes.push(0x18);
        }
        if self.coloured {
            bytes.extend(b"\x1b[0m");
        }
        if self.keypad {
            bytes.extend(b"\x1b>");
        }
        if self.region {
            // Setting the region moves the cursor.
            bytes.extend(b"\x1b7\x1b[r\x1b8");
        }
        let is_changed = |mode: &&u16| self.changed.contains(mode);
        for mode in ON.iter().filter(is_changed) {
            bytes.extend(format!("\x1b[?{mode}h").bytes());
        }
        for mode in OFF.iter().filter(is_changed) {
            bytes.extend(format!("\x1b[?{mode}l").bytes());
        }
        bytes
    }
}

/// Whether these are all the bytes of a sequence after its ESC.
fn is_complete(sequence: &[u8]) -> bool {
    match sequence {
        [b'['] => false,
        [b'[', .., last] => (0x40..=0x7e).contains(last),
        [b'(' | b')' | b'#' | b'%' | b' '] => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(output: &[u8]) -> String {
        let mut modes = Modes::default();
        modes.see(output);
        let whole = modes.undo();
        // In pieces of one byte it is the same.
        let mut pieces = Modes::default();
        output.iter().for_each(|byte| pieces.see(&[*byte]));
        assert_eq!(pieces.undo(), whole);
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn what_was_switched_on_is_switched_off() {
        assert_eq!(undone(b"plain text\r\n"), "");
        assert_eq!(undone(b"\x1b[31mred\x1b[0m"), "");
        assert_eq!(undone(b"\x1b[31mred"), "\x1b[0m");
        assert_eq!(undone(b"\x1b[?1049h\x1b[?25l"), "\x1b[?25h\x1b[?1049l");
        assert_eq!(undone(b"\x1b[?1049h\x1b[?1049l"), "");
        assert_eq!(
            undone(b"\x1b[?1000;1006h\x1b[?2004h\x1b="),
            "\x1b>\x1b[?1000l\x1b[?1006l\x1b[?2004l"
        );
        assert_eq!(undone(b"\x1b[2;10r"), "\x1b7\x1b[r\x1b8");
        assert_eq!(undone(b"\x1b[?1049h\x1bc"), "");
        assert_eq!(undone(b"\x1b[?10"), "\x18");
    }

    #[test]
    fn no_output_makes_it_grow() {
        let mut modes = Modes::default();
        modes.see(b"\x1b[?");
        modes.see(&vec![b'1'; 1 << 20]);
        assert!(modes.pending.is_none());
        for mode in 0..=u16::MAX {
            modes.see(format!("\x1b[?{mode}h\x1b[?{mode}l").as_bytes());
        }
        assert!(modes.changed.len() <= OFF.len() + ON.len());
        assert!(modes.undo().len() < 256);
    }
}
