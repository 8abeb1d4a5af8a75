//! Simple commands: their words, assignments and redirections, from the parser or from folded text.

use brush_parser::ast::{
    self, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem as Item, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, RedirectList, SimpleCommand,
};

use super::finding::Finding;
use super::state::Judge;
use crate::programs::Stdin;
use crate::shell::{
    Mode, NUMBER, Piece, Redirection, Step, UNKNOWN, Unreadable, Word, is_number, marked, to_text,
    word_text,
};

/// The parts of a simple command that have been read.
struct Gathered {
    words: Vec<Word>,
    assigned: Vec<(String, Word)>,
    finding: Finding,
    stdin: Stdin,
}

impl Gathered {
    fn new(stdin: Stdin) -> Gathered {
        Gathered {
            words: Vec::with_capacity(8),
            assigned: Vec::new(),
            finding: Finding::default(),
            stdin,
        }
    }
}

impl Judge {
    /// Judges one simple command. Returns the standard input of the next one in the pipeline.
    pub(crate) fn judge_simple(
        &mut self,
        simple: &SimpleCommand,
        stdin: Stdin,
    ) -> Result<Stdin, Unreadable> {
        let mut gathered = Gathered::new(stdin);
        for item in simple.prefix.iter().flat_map(|p| &p.0) {
            match item {
                Item::AssignmentWord(assignment, _) => {
                    let assigned = self.assignment(assignment)?;
                    gathered.assigned.push(assigned);
                }
                other => self.add_item(other, &mut gathered)?,
            }
        }
        if let Some(name) = &simple.word_or_name {
            self.read_words_into(&name.value, &mut gathered.words)?;
        }
        for item in simple.suffix.iter().flat_map(|s| &s.0) {
            self.add_item(item, &mut gathered)?;
        }
        let output = echo_output(&gathered.words, &gathered.stdin);
        self.judge_gathered(gathered);
        Ok(output)
    }

    /// Judges a folded run of plain commands.
    pub(crate) fn judge_run(&mut self, steps: &[Step<'_>]) -> Result<(), Unreadable> {
        let mut gathered = Gathered::new(Stdin::Inherited);
        for step in steps {
            match *step {
                Step::Word(word) => self.read_words_into(word, &mut gathered.words)?,
                Step::Assign { name, value } => {
                    let value = self.read_one(value)?;
                    gathered.assigned.push((name.to_owned(), value));
                }
                Step::Redirect { kind, target } => {
                    self.add_redirection(kind, target, &mut gathered)?
                }
                Step::End { piped } => {
                    let output = match piped {
                        true => echo_output(&gathered.words, &gathered.stdin),
                        false => Stdin::Inherited,
                    };
                    let next = Gathered::new(output);
                    self.judge_gathered(std::mem::replace(&mut gathered, next));
                }
            }
        }
        Ok(())
    }

    fn judge_gathered(&mut self, gathered: Gathered) {
        let Gathered {
            words,
            assigned,
            mut finding,
            stdin,
        } = gathered;
        for (name, value) in assigned {
            self.assign(&name, value, &words, &mut finding);
        }
        self.judge_words(words, stdin, finding);
    }

    fn add_item(&mut self, item: &Item, gathered: &mut Gathered) -> Result<(), Unreadable> {
        match item {
            Item::IoRedirect(redirect) => self.add_redirect(redirect, gathered)?,
            Item::Word(word) => self.read_words_into(&word.value, &mut gathered.words)?,
            Item::AssignmentWord(assignment, word) => match &assignment.value {
                AssignmentValue::Scalar(_) => {
                    self.read_words_into(&word.value, &mut gathered.words)?;
                }
                AssignmentValue::Array(_) => {
                    let (name, _) = self.assignment(assignment)?;
                    gathered.words.push(Word::fixed(format!("{name}=()")));
                }
            },
            Item::ProcessSubstitution(_, subshell) => {
                self.walk_subshell(&subshell.list, None)?;
                gathered.words.push(Word::fixed("/dev/fd/63"));
            }
        }
        Ok(())
    }

    fn assignment(&mut self, assignment: &ast::Assignment) -> Result<(String, Word), Unreadable> {
        let name = match &assignment.name {
            AssignmentName::VariableName(name) => name.clone(),
            AssignmentName::ArrayElementName(name, index) => {
                self.evaluate(index, Mode::Text)?;
                name.clone()
            }
        };
        let value = match &assignment.value {
            AssignmentValue::Scalar(word) => self.read_one(&word.value)?,
            AssignmentValue::Array(elements) => {
                let mut any_text = false;
                for (key, value) in elements {
                    key.as_ref()
                        .map_or(Ok(()), |key| self.evaluate(&key.value, Mode::Text))?;
                    let values = self.read_words(&value.value, self.mode)?;
                    let number = |word: &Word| is_number(&word.text, word.any_text);
                    any_text |= !values.iter().all(number);
                    self.check_paths(&name, &values);
                }
                Word {
                    any_text,
                    ..Word::unknown()
                }
            }
        };
        let value = match assignment.append {
            true => self.appended(&name, value),
            false => value,
        };
        Ok((name, value))
    }

    /// The value of a variable after `name+=value`.
    fn appended(&self, name: &str, value: Word) -> Word {
        let known = self.vars.get(name).and_then(|values| values.split_last());
        let unknown = UNKNOWN.to_string();
        let (before, earlier) = known.unwrap_or((&unknown, &[]));
        Word {
            text: format!("{}{}", to_text(before), value.text),
            dynamic: value.dynamic || before.contains([UNKNOWN, NUMBER]),
            any_text: value.any_text || before.contains(UNKNOWN),
            one_of_several: value.one_of_several || !earlier.is_empty(),
            ..value
        }
    }

    pub(crate) fn judge_redirects(
        &mut self,
        redirects: Option<&RedirectList>,
    ) -> Result<(), Unreadable> {
        let Some(redirects) = redirects else {
            return Ok(());
        };
        let mut gathered = Gathered::new(Stdin::Inherited);
        for redirect in &redirects.0 {
            self.add_redirect(redirect, &mut gathered)?;
        }
        self.judge_words(Vec::new(), Stdin::Inherited, gathered.finding);
        Ok(())
    }

    fn add_redirect(
        &mut self,
        redirect: &IoRedirect,
        gathered: &mut Gathered,
    ) -> Result<(), Unreadable> {
        let (kind, word) = match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Fd(_) => return Ok(()),
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                    gathered.stdin = Stdin::Piped;
                    return self.walk_subshell(&subshell.list, None);
                }
                IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                    (redirection(kind), word)
                }
            },
            IoRedirect::OutputAndError(word, _) => (Redirection::Write, word),
            IoRedirect::HereString(_, word) => (Redirection::Text, word),
            // Masked text has no here-documents.
            IoRedirect::HereDocument(..) => return Err(Unreadable),
        };
        self.add_redirection(kind, &word.value, gathered)
    }

    fn add_redirection(
        &mut self,
        kind: Redirection,
        source: &str,
        gathered: &mut Gathered,
    ) -> Result<(), Unreadable> {
        if kind == Redirection::Text {
            gathered.stdin = self.read_input(source)?;
            return Ok(());
        }
        let word = self.read_one(source)?;
        match kind {
            Redirection::Read => {
                gathered.stdin = match word.text.starts_with("/dev/") || word.dynamic {
                    true => Stdin::Piped,
                    false => Stdin::File,
                };
                self.check_read(&word, &mut gathered.finding);
            }
            Redirection::DuplicateInput => gathered.stdin = Stdin::Piped,
            Redirection::DuplicateOutput if is_descriptor(&word.text) => {}
            _ => self.check_write(&word, &mut gathered.finding),
        }
        Ok(())
    }

    /// The text of a here-string, or of the here-document that a mark stands for.
    fn read_input(&mut self, source: &str) -> Result<Stdin, Unreadable> {
        let document = source
            .chars()
            .next()
            .and_then(|c| marked(c, &self.pieces))
            .cloned();
        Ok(Stdin::Text(match document {
            Some(Piece::Document { body, expands }) => {
                if expands {
                    self.read_words(&body, Mode::Text)?;
                }
                body
            }
            _ => word_text(&self.read_one(source)?),
        }))
    }
}

fn redirection(kind: &IoFileRedirectKind) -> Redirection {
    match kind {
        IoFileRedirectKind::Read => Redirection::Read,
        IoFileRedirectKind::DuplicateInput => Redirection::DuplicateInput,
        IoFileRedirectKind::DuplicateOutput => Redirection::DuplicateOutput,
        _ => Redirection::Write,
    }
}

fn is_descriptor(text: &str) -> bool {
    text == "-"
        || text
            .trim_end_matches('-')
            .bytes()
            .all(|b| b.is_ascii_digit())
}

/// The output of `echo`, `printf`, or `cat` of a here-document, if it is known.
fn echo_output(words: &[Word], stdin: &Stdin) -> Stdin {
    let Some((name, arguments)) = words.split_first() else {
        return Stdin::Piped;
    };
    match (name.text.as_str(), stdin) {
        ("printf", _)
            if arguments
                .first()
                .is_some_and(|word| word.text.contains('%')) =>
        {
            printed(arguments)
        }
        ("echo" | "printf", _) => {
            let text: Vec<String> = arguments
                .iter()
                .map(word_text)
                .skip_while(|t| matches!(t.as_str(), "-n" | "-e" | "-ne" | "-en"))
                .collect();
            Stdin::Text(unescaped(&text.join(" ")))
        }
        ("cat" | "tee", Stdin::Text(text)) => Stdin::Text(text.clone()),
        _ => Stdin::Piped,
    }
}

fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t")
}

/// The output of `printf` with plain directives. With others it is not known.
fn printed(arguments: &[Word]) -> Stdin {
    let Some((format, values)) = arguments.split_first() else {
        return Stdin::Piped;
    };
    let format = unescaped(&word_text(format));
    let mut values = values.iter().map(word_text).peekable();
    let mut text = String::new();
    loop {
        let mut pieces = format.split('%');
        text.extend(pieces.next());
        let mut consumed = false;
        while let Some(piece) = pieces.next() {
            match piece.chars().next() {
                Some('s' | 'b' | 'q' | 'd' | 'i') => {
                    text.extend(values.next());
                    text.push_str(&piece[1..]);
                    consumed = true;
                }
                // `%%` gives an empty piece, and the next piece follows the percent sign.
                None => text.extend(["%", pieces.next().unwrap_or_default()]),
                Some(_) => return Stdin::Piped,
            }
        }
        if values.peek().is_none() || !consumed {
            return Stdin::Text(text);
        }
    }
}
