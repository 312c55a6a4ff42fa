//! The positions in which a reference is rejected, with messages and help texts.

/// A position in which a reference is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In the lines of a here-document with a quoted delimiter, or in a delimiter.
    HereDocument,
    /// In a comment.
    Comment,
    /// In `$(( ))`, `(( ))` or `$[ ]`.
    Arithmetic,
    /// In an array or its subscript.
    Subscript,
    /// In `[[ ]]` with an operator that evaluates its operands, such as `-eq` or `-v`.
    EvaluatingTest,
    /// In `[ ]` with `-a` or `-o`, which could interpret a value as an operator.
    JoinedTest,
    /// In `${…}`.
    ParameterExpansion,
    /// In `$'…'`.
    EscapedString,
    /// In `$"…"`.
    TranslatedString,
    /// In backquotes.
    Backquotes,
    /// Directly after a backslash.
    AfterBackslash,
    /// Directly after `$`.
    AfterDollar,
    /// As the name of a command.
    CommandName,
    /// In an assignment to a variable that must not receive values.
    Assignment,
    /// In an argument of a program that is not known to treat it as data.
    Argument,
    /// In an argument that the program could interpret as an option.
    Option,
    /// In a refspec of `git push` or `git fetch` that may name more than one branch or tag.
    Refspec,
    /// In a path argument that `git` interprets as a pattern.
    Pathspec,
    /// In a script whose folder a value selects.
    Folder,
    /// In an argument that `git` accepts as a revision or as a path.
    Revision,
    /// At the start of a path: an empty value would give a path from the root.
    Root,
    /// In an image name for `docker` in which a value could select the registry.
    Registry,
    /// In data for `curl` that may be interpreted as a file name.
    Data,
    /// In a header for `curl`.
    Header,
    /// In a URL for `curl` without `-g`, which expands brackets to several URLs.
    Globbing,
    /// In a pattern, through an unquoted variable or command substitution.
    Pattern,
    /// In a script that uses the path of a stream or a process.
    Device,
    /// In the format of `printf`.
    Format,
    /// In code for another interpreter.
    InnerScript,
    /// On the standard input of a program that is not known to treat it as data.
    Input,
    /// As the file name of a redirection.
    Target,
    /// As the target of `>&` or `<&`.
    Duplicate,
    /// In output to a file that may be code or configuration.
    Written,
    /// In a function or its arguments.
    Function,
    /// In an argument of a builtin that evaluates it or changes how bash parses the script.
    Evaluates,
    /// In or after a construct that is not closed.
    Unterminated,
    /// Below too many levels of nesting.
    TooDeep,
    /// In a script that is too long to check.
    TooLong,
    /// In or after a construct that shells parse differently, or that the parser does not support.
    Unclear,
    /// In a script in which another part cannot be checked.
    Beside,
}

/// The help text that always applies.
const IN_ENV: &str = "Write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script.";

impl Place {
    /// Describes the position for a message; in lower case, continues a sentence after "stands".
    pub fn describe(self) -> &'static str {
        match self {
            Self::HereDocument => "inside a here-document",
            Self::Comment => "inside a comment",
            Self::Arithmetic => "inside an arithmetic expression, which bash evaluates",
            Self::Subscript => "inside an array or its subscript, which bash evaluates",
            Self::EvaluatingTest => "inside a [[ ]] whose operator evaluates its operands (as -eq and -v do)",
            Self::JoinedTest => "inside a [ ] with -a or -o, where its value could be taken for an operator",
            Self::ParameterExpansion => "inside a ${…} expansion",
            Self::EscapedString => "inside a $'…' string",
            Self::TranslatedString => "inside a $\"…\" string",
            Self::Backquotes => "inside backquotes",
            Self::AfterBackslash => "directly after a backslash",
            Self::AfterDollar => "directly after a $",
            Self::CommandName => "where a command's name is expected",
            Self::Assignment => "in the value of a variable that programs may read from their environment",
            Self::Argument => {
                "among the arguments of a command that is not in the table of those that take a value there"
            }
            Self::Option => "where its value could become an option, and an option can run code",
            Self::Refspec => {
                "where git takes it for a refspec, and its value could delete a branch or write another one, or all of them"
            }
            Self::Pathspec => "where git takes it for a pattern of paths, and its value could be all of them",
            Self::Folder => {
                "in a script that a value in `cwd` gives a folder, beside a command that could run code or configuration in it"
            }
            Self::Revision => {
                "where git takes it for paths if no branch or tag has its value, and replaces those files"
            }
            Self::Root => "at the start of a path, where an empty value would give a path from the root or all files",
            Self::Registry => "in the name of an image, where its value could name the registry that it is sent to",
            Self::Data => "in data of curl, where a value that begins with @ is the name of a file",
            Self::Header => "in a header of curl, where a value with a newline adds headers and requests",
            Self::Globbing => "in an address of a curl that makes several of one with brackets in it",
            Self::Pattern => "in a pattern, where its value could match everything",
            Self::Device => "in a script with a path of a stream or a process",
            Self::Format => "in the format of printf",
            Self::InnerScript => {
                "inside code that is given to an interpreter, or that is not known to treat it as data"
            }
            Self::Input => "in what reaches the standard input of a program that may take it for code",
            Self::Target => "as the file of a redirection",
            Self::Duplicate => "as the target of >& or <&, which bash evaluates a second time",
            Self::Written => "in what is written to a file that may be code or configuration",
            Self::Function => "in a function or among its arguments",
            Self::Evaluates => "among the arguments of a builtin that evaluates them",
            Self::Unterminated => "in or after something that is opened and not closed",
            Self::TooDeep => "inside too many levels of nesting",
            Self::TooLong => "in a script that is too long to be read with certainty",
            Self::Unclear => "in or after something that cannot be read with certainty",
            Self::Beside => "in a script that cannot be read with certainty",
        }
    }

    /// Explains why a part of the script at such a position rejects references elsewhere.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Unterminated => "which is not closed",
            Self::Function => "which defines a function, and values are not followed into functions",
            Self::Evaluates => "which can evaluate values, or changes how the script is read",
            Self::CommandName => "whose program is not named literally",
            Self::Arithmetic | Self::EvaluatingTest => {
                "whose names may hold something other than numbers of the script"
            }
            Self::JoinedTest => "which gives a value to a [ ] with -a or -o",
            Self::Argument | Self::Option | Self::Format | Self::InnerScript => {
                "which a value reaches by a variable, an output or a file, and which is not known to treat it as data"
            }
            Self::Input => "which a value reaches on its standard input",
            Self::Target | Self::Written => "which may write a value into a file that may be code or configuration",
            Self::Assignment => "which gives a value to programs by a variable",
            Self::Refspec => "which gives a value to git as a refspec (write the reference itself there)",
            Self::Pathspec => "which gives a value to git as a pattern of paths",
            Self::Folder => "which could run code or configuration of a folder that a value in `cwd` selects",
            Self::Revision => "which gives a value to git as a branch, a tag or paths",
            Self::Root => "which has a value at the start of a path, where it may be empty (write \"${NAME:?}\" there)",
            Self::Registry => "which gives a value to docker as the name of a registry",
            Self::Data => "which gives a value to curl as data that may be the name of a file",
            Self::Header => "which gives a value to curl as a header",
            Self::Globbing => "which gives a value to curl in an address without -g",
            Self::Pattern => "which has a value in a pattern",
            Self::Device => {
                "which names a stream or a process by a path below /dev or /proc, where values may be found"
            }
            _ => "beside which values cannot be followed",
        }
    }

    /// Returns the help text as a whole sentence, with `@REFERENCE` as placeholder for the reference.
    pub(super) fn help(self) -> &'static str {
        match self {
            Self::Comment => "Write @@ for a literal @, or take the reference out.",
            Self::AfterBackslash => {
                "Write @@ for a literal @; for the value, write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script."
            }
            Self::HereDocument => {
                "Write `env: {NAME: \"@REFERENCE\"}` in the step and $NAME in the script, with a delimiter that is not quoted; write @@ for a literal @."
            }
            Self::Subscript => {
                "Write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script; where it is a subscript, check first that it is a number."
            }
            Self::JoinedTest => {
                "Write each comparison as a test of its own, as in [ @REFERENCE = a ] || [ @REFERENCE = b ]; or write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script."
            }
            Self::Arithmetic | Self::EvaluatingTest => {
                "Write `env: {NAME: \"@REFERENCE\"}` in the step, check in the script that it is a number, then use $NAME."
            }
            Self::CommandName => {
                "Write `env: {NAME: \"@REFERENCE\"}` in the step, check in the script that it is a command you allow, then use \"$NAME\"."
            }
            Self::InnerScript => {
                "Write `env: {NAME: \"@REFERENCE\"}` in the step and let the inner code read it from its environment, as in sh -c 'echo \"$NAME\"'."
            }
            Self::Option => {
                "Put -- before it if the table has the program, as in `-- @REFERENCE`; or write `env: {NAME: \"@REFERENCE\"}` in the step and -- \"$NAME\" in the script."
            }
            Self::Argument => {
                "Write `env: {NAME: \"@REFERENCE\"}` in the step and -- \"$NAME\" in the script, where your program decides what it does with it."
            }
            Self::Assignment => {
                "Use a name of your own that is neither exported nor in the step's `env`; or write `env: {NAME: \"@REFERENCE\"}` in the step."
            }
            Self::Refspec => {
                "Write both sides, as in \"HEAD:refs/heads/@REFERENCE\" or \"refs/tags/v@REFERENCE^{object}:refs/tags/v@REFERENCE\" (without ^{object} for git fetch, and there without --prune and --force); or write `env: {NAME: \"@REFERENCE\"}` in the step and check \"$NAME\" in the script."
            }
            Self::Pathspec => {
                "Write `git --literal-pathspecs` and -- before it; or write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script."
            }
            Self::Folder => {
                "Write `cwd` without references, or only commands of the table; or write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script."
            }
            Self::Revision => {
                "Write -- after it, as in git checkout \"v@REFERENCE\" --; or write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script."
            }
            Self::Root => {
                "Write the reference itself, or a variable as \"${NAME:?}\"/..., with which bash ends the script if it is empty; or write `env: {NAME: \"@REFERENCE\"}` in the step and \"${NAME:?}\" in the script."
            }
            Self::Registry => {
                "Write the registry before it, as in \"registry.example.com/app:@REFERENCE\" or \"docker.io/library/app:@REFERENCE\"; or write `env: {NAME: \"@REFERENCE\"}` in the step and check \"$NAME\" in the script."
            }
            Self::Data => {
                "Write --data-raw, or letters of your own before it; or write `env: {NAME: \"@REFERENCE\"}` in the step and --data-raw \"$NAME\" in the script."
            }
            Self::Header => {
                "Write `env: {NAME: \"@REFERENCE\"}` in the step and \"X-Name: $(printf %s \"$NAME\" | tr -d '\\r\\n')\" in the script."
            }
            Self::Globbing => {
                "Write `curl -g`; or write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script."
            }
            Self::Pattern => {
                "Put double quotes around it; or write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script."
            }
            Self::Written => {
                "Write `env: {NAME: \"@REFERENCE\"}` in the step and \"$NAME\" in the script, as in printf '%s\\n' \"$NAME\" > FILE."
            }
            _ => IN_ENV,
        }
    }
}
