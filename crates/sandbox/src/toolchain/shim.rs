//! The program that stands for a tool inside a sandbox: finds the version that is wanted, and becomes it.
//!
//! A shim is a script whose interpreter is this program, so that it is found by whatever looks through PATH: a shell, make, a
//! script of npm. It has the rights of the command and decides nothing that the command could not decide itself.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::toolchain::catalogue::{Catalogue, Installed, find_in, system_program};
use crate::toolchain::choose::{Choice, choose, newest};
use crate::toolchain::pins::{Pin, Unreadable, pin_of};
use crate::toolchain::survey::is_numbered;
use crate::toolchain::version::{Number, Wanted};
use crate::toolchain::{CATALOGUE, Family, SHIMS, SYSTEM_BINS, twin};

/// The first argument of this program as a shim.
pub const SHIM_ROLE: &str = "__tool";
/// As shells say that something is there but cannot be run, and that it is not there.
const NOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
/// How many versions a message names.
const NAMED: usize = 12;
/// The longest answer to the question for a version.
const ANSWER: u64 = 4 << 10;

/// What to become.
struct Run {
    path: PathBuf,
    /// What all that it runs is told.
    variable: Option<(&'static str, String)>,
}

/// Why a tool is not run.
struct Refusal {
    code: u8,
    text: String,
}

/// Runs a process started by a shim: `<binary> __tool <shim> ARGUMENTS`.
pub fn tool_main() -> ExitCode {
    let mut words = env::args_os().skip(2);
    let shim = words.next().map(PathBuf::from).unwrap_or_default();
    let mut arguments: Vec<OsString> = words.collect();
    let name = shim.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let refusal = match resolve(name, &mut arguments) {
        Ok(run) => {
            let mut command = Command::new(&run.path);
            command.args(arguments).envs(run.variable);
            let error = command.exec();
            Refusal {
                code: NOT_RUN,
                text: format!("{} cannot be run: {error}", run.path.display()),
            }
        }
        Err(refusal) => refusal,
    };
    // Whoever has closed standard error does not want to know.
    let _ = writeln!(std::io::stderr(), "avfs: {}", refusal.text);
    ExitCode::from(refusal.code)
}

/// What was asked for, and by whom.
struct Asked {
    source: String,
    wanted: Vec<Wanted>,
}

fn resolve(program: &str, arguments: &mut Vec<OsString>) -> Result<Run, Refusal> {
    let catalogue = read_catalogue();
    let installed = catalogue.installed();
    let Some(family) = family_of(program, &installed) else {
        return usual(program, &[]);
    };
    let installed: Vec<_> = installed
        .into_iter()
        .filter(|it| it.family == family)
        .collect();
    match asked_for(family, arguments)? {
        None => usual(program, &installed),
        Some(asked) => chosen(family, program, &asked, &installed),
    }
}

/// Without it no version but the usual ones is known.
fn read_catalogue() -> Catalogue {
    let bytes = std::fs::read(Path::new("/etc").join(SHIMS).join(CATALOGUE));
    let catalogue = bytes.ok().and_then(|bytes| Catalogue::from_bytes(&bytes));
    catalogue.unwrap_or_default()
}

fn family_of(program: &str, installed: &[Installed]) -> Option<Family> {
    let known = Family::ALL
        .into_iter()
        .find(|family| family.programs().contains(&program));
    known.or_else(|| {
        let has = |version: &&Installed| version.bin.join(program).exists();
        installed.iter().find(has).map(|version| version.family)
    })
}

/// `+nightly`, then the variable, then the nearest file.
fn asked_for(family: Family, arguments: &mut Vec<OsString>) -> Result<Option<Asked>, Refusal> {
    let first = arguments.first().and_then(|word| word.to_str());
    if let (Family::Rust, Some(name)) = (family, first.and_then(|word| word.strip_prefix('+'))) {
        let asked = read_words(family, &format!("+{name}"), &[name])?;
        arguments.remove(0);
        return Ok(Some(asked));
    }
    let variable = family.variable();
    if let Some(value) = env::var_os(variable).filter(|value| !value.is_empty()) {
        let value = value.to_string_lossy();
        let names: Vec<&str> = value.split(':').collect();
        return read_words(family, variable, &names).map(Some);
    }
    // From version 1.21 on, go has its own ways to another version.
    if family == Family::Go && env::var_os("GOTOOLCHAIN").is_some_and(|value| !value.is_empty()) {
        return Ok(None);
    }
    match pin_of(family) {
        Ok(pin) => Ok(pin.map(|Pin { file, wanted }| Asked {
            source: file,
            wanted,
        })),
        Err(Unreadable { file, reason }) => Err(Refusal {
            code: NOT_RUN,
            text: format!(
                "{} is not run: {file:?} does not say which version: {reason}\n  {}",
                family.as_str(),
                by_variable(family)
            ),
        }),
    }
}

fn read_words(family: Family, source: &str, names: &[&str]) -> Result<Asked, Refusal> {
    let wanted: Option<Vec<_>> = names
        .iter()
        .map(|name| Wanted::parse(family, name))
        .collect();
    let wanted = wanted.ok_or_else(|| Refusal {
        code: NOT_RUN,
        text: format!("{source:?} names no version of {}", family.as_str()),
    })?;
    Ok(Asked {
        source: source.to_owned(),
        wanted,
    })
}

/// The program as it is found where nothing is pinned.
fn usual(program: &str, installed: &[Installed]) -> Result<Run, Refusal> {
    let path = env::var_os("PATH").unwrap_or_default();
    let shims = Path::new("/etc").join(SHIMS);
    let dirs: Vec<PathBuf> = env::split_paths(&path)
        .filter(|dir| *dir != shims)
        .collect();
    let found = [Some(program), twin(program)].into_iter().flatten();
    let found = found.filter_map(|name| find_in(dirs.iter().map(PathBuf::as_path), name));
    let mut found = found.chain(numbered(program, installed));
    let path = found.next().ok_or_else(|| Refusal {
        code: NOT_FOUND,
        text: format!(
            "{program}: command not found{}",
            who_has(program, installed)
        ),
    })?;
    let bin = path.parent().unwrap_or(&path);
    let of = installed.iter().find(|version| version.bin == bin);
    let family = of
        .map(|version| version.family)
        .or(family_of(program, installed));
    let name = match of {
        Some(version) => Some(version.name.clone()),
        None => SYSTEM_BINS
            .iter()
            .any(|dir| Path::new(dir) == bin)
            .then(|| "system".to_owned()),
    };
    Ok(Run {
        variable: family.map(Family::variable).zip(name),
        path,
    })
}

/// The program of the first version asked for that is there.
fn chosen(
    family: Family,
    program: &str,
    asked: &Asked,
    installed: &[Installed],
) -> Result<Run, Refusal> {
    let choices = asked.wanted.iter();
    let choices: Vec<Choice> = choices
        .filter_map(|wanted| choose(family, wanted, installed, &ask))
        .collect();
    if choices.is_empty() {
        return Err(missing(family, program, asked, installed));
    }
    for choice in &choices {
        let names = [Some(program), twin(program)];
        let mut paths = names.into_iter().flatten().filter_map(|name| match choice {
            Choice::Installed(version) => find_in([version.bin.as_path()], name),
            Choice::System => system_program(name),
        });
        if let Some(path) = paths.next() {
            let name = match choice {
                Choice::Installed(version) => version.name.clone(),
                Choice::System => "system".to_owned(),
            };
            let variable = Some((family.variable(), name));
            return Ok(Run { path, variable });
        }
    }
    if let Some(path) = numbered(program, installed) {
        return Ok(Run {
            path,
            variable: None,
        });
    }
    let wanted = texts(asked);
    let (source, have) = (&asked.source, who_has(program, installed));
    Err(Refusal {
        code: NOT_FOUND,
        text: format!(
            "{program}: not in {} {wanted}, which {source:?} wants{have}",
            family.as_str()
        ),
    })
}

/// A program that says its version in its own name may be of any version.
fn numbered(program: &str, installed: &[Installed]) -> Option<PathBuf> {
    if !is_numbered(program) {
        return None;
    }
    let having = installed
        .iter()
        .filter(|version| version.bin.join(program).exists());
    let own = newest(having).map(|version| version.bin.join(program));
    own.or_else(|| system_program(program))
}

fn who_has(program: &str, installed: &[Installed]) -> String {
    let having = installed
        .iter()
        .filter(|version| version.bin.join(program).exists());
    let names: Vec<&str> = having
        .take(NAMED)
        .map(|version| version.name.as_str())
        .collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("; it is in {}", names.join(", ")),
    }
}

fn missing(family: Family, program: &str, asked: &Asked, installed: &[Installed]) -> Refusal {
    let (wanted, source) = (texts(asked), &asked.source);
    let mut there: Vec<&str> = installed
        .iter()
        .map(|version| version.name.as_str())
        .collect();
    // Two names may be one version.
    there.dedup();
    let more = there.len().saturating_sub(NAMED);
    there.truncate(NAMED);
    let mut there = there.join(", ");
    if more > 0 {
        there += &format!(" and {more} more");
    }
    let system = system_program(family.asked().0).and_then(|path| ask(family, &path));
    if let Some(number) = system {
        let comma = if there.is_empty() { "" } else { ", " };
        there += &format!("{comma}system ({number})");
    }
    let there = if there.is_empty() {
        "none".to_owned()
    } else {
        there
    };
    let first = asked
        .wanted
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    Refusal {
        code: NOT_RUN,
        text: format!(
            "{program} is not run: {source:?} wants {} {wanted}, which this host does not have (it has: {there})\n  \
             on the host: {}\n  {}",
            family.as_str(),
            family.how_to_install(&first),
            by_variable(family),
        ),
    }
}

fn by_variable(family: Family) -> String {
    let go = match family {
        Family::Go => ", or --env GOTOOLCHAIN=auto to let go download it",
        _ => "",
    };
    let variable = family.variable();
    format!(
        "or use another one: avfs exec --env {variable}=VERSION (system: the one without a manager){go}"
    )
}

fn texts(asked: &Asked) -> String {
    let texts: Vec<String> = asked.wanted.iter().map(ToString::to_string).collect();
    texts.join(" or ")
}

/// The version that a program says it is.
fn ask(family: Family, program: &Path) -> Option<Number> {
    let mut child = Command::new(program)
        .arg(family.asked().1)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut text = Vec::new();
    let read = child.stdout.take()?.take(ANSWER).read_to_end(&mut text);
    child.wait().ok()?;
    read.ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut words = text.split_whitespace();
    words.find_map(|word| Number::at_start(word.trim_start_matches(char::is_alphabetic)))
}
