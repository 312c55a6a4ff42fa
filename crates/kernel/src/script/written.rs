//! Files that a script writes and runs: what is written with a value in it would be run with the value in it.

use alloc::{collections::BTreeSet, vec::Vec};
use core::ops::Range;

use super::{
    Place,
    commands::is_code_file,
    external::inner_command,
    interpreters::{self, base_name},
    lexer::Lexer,
    nesting::{Redirect, Word},
};

/// What a script writes and what it runs, by the last part of the files' names.
#[derive(Debug, Default)]
pub(super) struct Written {
    files: BTreeSet<Vec<u8>>,
    /// Whether there is a file whose name is not literal.
    has_unknown_file: bool,
    runs: Vec<Run>,
    /// Whether something is made executable.
    makes_executable: bool,
}

#[derive(Debug)]
struct Run {
    name: Name,
    /// The references of the command that runs it: its arguments.
    marks: Range<usize>,
}

#[derive(Debug)]
enum Name {
    /// A file by its path, or what an interpreter or `source` is told to read.
    File(Vec<u8>),
    /// A program that is looked for in `PATH`.
    Program(Vec<u8>),
    /// A file whose name is not literal.
    UnknownFile,
    /// A program whose name is not literal.
    UnknownProgram,
}

impl Written {
    /// The references that may stand in a file that the script runs: all but the arguments of the command that runs it.
    pub(super) fn run(self, marks_met: usize) -> Vec<Range<usize>> {
        let is_written = |run: &&Run| match &run.name {
            Name::File(name) => self.has_unknown_file || self.files.contains(name),
            Name::Program(name) => self.files.contains(name),
            Name::UnknownFile => self.has_unknown_file || !self.files.is_empty(),
            Name::UnknownProgram => self.makes_executable && (self.has_unknown_file || !self.files.is_empty()),
        };
        let mut refused = Vec::new();
        for run in self.runs.iter().filter(is_written).take(2) {
            refused.extend([0..run.marks.start, run.marks.end..marks_met]);
        }
        refused
    }

    fn write(&mut self, word: &Word) {
        if interpreters::is_descriptor(&word.text) && !word.is_dynamic {
            return;
        }
        match word.is_dynamic || word.is_braced || word.text.iter().any(|byte| matches!(byte, b'*' | b'?')) {
            true => self.has_unknown_file = true,
            false => drop(self.files.insert(base_name(&word.text).to_vec())),
        }
    }

    fn reads_code(&mut self, word: &Word, marks: Range<usize>) {
        let name = if word.is_dynamic { Name::UnknownFile } else { Name::File(base_name(&word.text).to_vec()) };
        self.runs.push(Run { name, marks });
    }
}

impl Lexer<'_> {
    /// Notes what a command writes and runs, and refuses references that it writes into a file of code.
    pub(super) fn judge_files(&mut self, command: &[&Word], words: &[Word]) {
        let outputs = words.iter().filter(|word| word.redirect == Some(Redirect::Output));
        for word in outputs.clone() {
            self.written.write(word);
        }
        let command = inner_command(command);
        let Some((name, arguments)) = command.split_first() else { return self.judge_written(outputs, words) };
        let operands = arguments.iter().filter(|word| !word.text.starts_with(b"-"));
        let marks = match (words.first(), words.last()) {
            (Some(first), Some(last)) => first.marks.start..last.marks.end,
            _ => 0..0,
        };
        match base_name(&name.text) {
            b"tee" => operands.clone().for_each(|word| self.written.write(word)),
            b"cp" | b"mv" | b"ln" | b"install" => {
                arguments.last().into_iter().for_each(|word| self.written.write(word))
            }
            b"chmod" => self.written.makes_executable = true,
            _ => {}
        }
        if let b"." | b"source" = &name.text[..] {
            if let Some(file) = operands.clone().next() {
                self.written.reads_code(file, marks.clone());
            }
        } else if interpreters::is_interpreter(name) {
            if let Some(at) = interpreters::file_operand(name, arguments) {
                self.written.reads_code(arguments[at], marks.clone());
            }
        } else {
            let text = base_name(&name.text).to_vec();
            let program = match (name.is_dynamic, name.text.contains(&b'/')) {
                (true, true) => Name::UnknownFile,
                (true, false) => Name::UnknownProgram,
                (false, true) => Name::File(text),
                (false, false) => Name::Program(text),
            };
            self.written.runs.push(Run { name: program, marks });
        }
        let tees = operands.copied().filter(|_| base_name(&name.text) == b"tee");
        let tees: Vec<&Word> = tees.collect();
        self.judge_written(outputs.chain(tees), words);
    }

    /// `echo @vars.x > build.sh`: a later step, a hook or another program runs what is written.
    fn judge_written<'w>(&mut self, targets: impl Iterator<Item = &'w Word>, words: &[Word]) {
        let mut targets = targets;
        if let Some(first) = words.first()
            && targets.any(|word| is_code_file(&word.text))
        {
            let from = self.top().pipeline.input_from().unwrap_or(first.marks.start).min(first.marks.start);
            self.refuse(from..self.marks_met(), Place::WrittenCode);
        }
    }
}
