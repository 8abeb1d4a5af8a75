//! Notes about a command that was probably meant otherwise.

use crate::args::Time;
use crate::output::style;
use avfs_api::wire::{Envelope, Exec, StatusWord};
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use std::os::fd::AsFd;

/// Whoever means milliseconds seldom writes less than this without a unit.
const SHORT_MS: u64 = 10_000;

/// A short time without a unit: probably seconds were meant.
pub fn of_timeout(time: Time) -> Option<String> {
    let millis = time.millis();
    let is_doubtful = !time.has_unit() && (1..SHORT_MS).contains(&millis);
    is_doubtful.then(|| {
        noted(&format!(
            "--timeout {millis} means {millis} milliseconds; write {millis}s for seconds"
        ))
    })
}

/// Standard input has data that the command did not get. It is not read, so it does not block.
pub fn of_input() -> Option<String> {
    has_data(std::io::stdin())
        .then(|| noted("standard input was not forwarded to the command; --stdin forwards it"))
}

/// A file at its beginning, or a pipe or socket with bytes in it. A file that was read from before is somebody else's
/// input, such as that of a loop around avfs.
fn has_data(input: impl AsFd) -> bool {
    let Ok(stat) = fstat(&input) else {
        return false;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            stat.st_size > 0 && seek(&input, SeekFrom::Current(0)).is_ok_and(|at| at == 0)
        }
        FileType::Fifo | FileType::Socket => {
            rustix::io::ioctl_fionread(&input).is_ok_and(|size| size > 0)
        }
        _ => false,
    }
}

/// No program has such a name: a line for a shell was given as one word.
pub fn of_one_word(envelope: &Envelope, request: &Exec) -> Option<String> {
    let is_line = match request.argv.as_slice() {
        [word] => word.contains(char::is_whitespace),
        _ => false,
    };
    (envelope.result.status == StatusWord::NotFound && is_line).then(|| {
        noted("the command is one word with spaces; --shell runs a line of text, as in --shell 'ls -la'")
    })
}

fn noted(text: &str) -> String {
    format!("{} {text}", style::good("note:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    #[test]
    fn only_data_that_nobody_has_begun_to_read_counts() {
        assert!(!has_data(File::open("/dev/null").unwrap()));
        assert!(!has_data(File::open("/").unwrap()));
        let (reader, mut writer) = std::io::pipe().unwrap();
        assert!(!has_data(&reader), "an empty pipe whose writer lives");
        writer.write_all(b"x").unwrap();
        assert!(has_data(&reader));
        drop((reader, writer));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(!has_data(&reader), "a pipe at its end");
        let mut file = tempfile::tempfile().unwrap();
        assert!(!has_data(&file), "an empty file");
        file.write_all(b"lines").unwrap();
        assert!(!has_data(&file), "a file at its end");
        std::io::Seek::rewind(&mut file).unwrap();
        assert!(has_data(&file));
        file.read_exact(&mut [0; 2]).unwrap();
        assert!(!has_data(&file), "the input of a loop");
    }
}
