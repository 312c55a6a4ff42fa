//! The language server: diagnostics, quick fixes, completion, hover, definition and rename, over standard input and output.
//!
//! It is synchronous and has one thread. Diagnostics of a changed text are sent when no message has come for a moment, so
//! that they do not delay an answer. They are found once for each version of a text. The compiler is the caller's, since
//! functions and schemas are checked in its workers.

mod complete;
mod document;
mod fixes;
mod objects;
mod outline;
mod position;
mod references;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeActionProviderCapability, CompletionList,
    CompletionOptions, CompletionParams, Diagnostic as LspDiagnostic, DiagnosticSeverity, DidChangeTextDocumentParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, GotoDefinitionParams, HoverParams, HoverProviderCapability,
    Location, NumberOrString, OneOf, PublishDiagnosticsParams, RenameOptions, RenameParams, ServerCapabilities,
    TextDocumentContentChangeEvent, TextDocumentPositionParams, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextEdit, Uri, WorkDoneProgressOptions, WorkspaceEdit,
};
use mainspring_kernel::{
    definition::{Field, Syntax},
    diagnostic::{Diagnostic, Severity},
    document::{Document, Path},
    limits::DEFINITION_BYTES_MAX,
};
use outline::Outline;
use serde_json::Value as Json;

use crate::language::Language;

/// Quick fixes of one request. An editor asks for those of a line.
const ACTIONS_MAX: usize = 16;

/// The time without a message after which changed texts are compiled. A person types faster, and an editor sends its requests
/// right after a change.
const QUIET: Duration = Duration::from_millis(150);

/// The compiler of the caller.
pub trait Compiler {
    /// Compiles the text of an address, and returns its diagnostics: errors and warnings.
    fn check(&self, address: &str, text: &str, syntax: Syntax) -> Vec<Diagnostic>;

    /// Returns the parts of the value at which a reference in a step ends, in a definition that need not be valid.
    fn fields(&self, address: &str, document: &Document, step: &Path, reference: &str) -> Vec<Field>;
}

/// An open text.
struct Text {
    text: String,
    outline: Outline,
    version: Option<i32>,
    /// The diagnostics of this version, once they are found.
    found: OnceCell<Vec<Diagnostic>>,
}

impl Text {
    /// Returns the diagnostics of a definition; none of another file.
    fn found(&self, compiler: &dyn Compiler, address: &str) -> &[Diagnostic] {
        self.found.get_or_init(|| {
            let is_ours = objects::is_definition(&self.outline) && !address.contains(".scenario.");
            if is_ours { compiler.check(address, &self.text, syntax(address)) } else { Vec::new() }
        })
    }
}

/// The server with its open texts.
struct Server<'s> {
    compiler: &'s dyn Compiler,
    language: Language,
    texts: BTreeMap<String, Text>,
    /// Addresses of texts whose diagnostics are due.
    due: BTreeSet<String>,
}

/// Serves one client on standard input and output until it disconnects. Returns an error if the client breaks the
/// protocol or the connection.
pub fn serve(compiler: &dyn Compiler) -> Result<(), String> {
    let (connection, threads) = Connection::stdio();
    let served = serve_on(&connection, compiler);
    drop(connection);
    let joined = threads.join().map_err(|error| format!("the connection broke: {error}"));
    served.and(joined)
}

/// Serves a client on a connection.
pub fn serve_on(connection: &Connection, compiler: &dyn Compiler) -> Result<(), String> {
    let capabilities = serde_json::to_value(capabilities()).map_err(|error| error.to_string())?;
    connection.initialize(capabilities).map_err(|error| format!("the client did not initialize: {error}"))?;
    let (language, texts, due) = (Language::default(), BTreeMap::new(), BTreeSet::new());
    Server { compiler, language, texts, due }.run(connection)
}

fn capabilities() -> ServerCapabilities {
    let triggers = ["@", ".", " ", ":"].map(String::from).to_vec();
    let completion = CompletionOptions { trigger_characters: Some(triggers), ..CompletionOptions::default() };
    let work_done_progress_options = WorkDoneProgressOptions::default();
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::INCREMENTAL)),
        completion_provider: Some(completion),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Simple(true)),
        rename_provider: Some(OneOf::Right(RenameOptions { prepare_provider: Some(true), work_done_progress_options })),
        ..ServerCapabilities::default()
    }
}

impl Server<'_> {
    fn run(&mut self, connection: &Connection) -> Result<(), String> {
        loop {
            // Without due diagnostics there is nothing to do before the next message.
            let received = match self.due.is_empty() {
                true => connection.receiver.recv().ok(),
                false => match connection.receiver.recv_timeout(QUIET) {
                    Err(error) if error.is_timeout() => {
                        self.publish_due(connection)?;
                        continue;
                    }
                    received => received.ok(),
                },
            };
            let Some(message) = received else { return Ok(()) };
            match message {
                Message::Request(request) => {
                    if connection.handle_shutdown(&request).map_err(|error| error.to_string())? {
                        return Ok(());
                    }
                    send(connection, Message::Response(self.answer(request)))?;
                }
                Message::Notification(notification) => self.notice(notification, connection)?,
                Message::Response(_) => {}
            }
        }
    }

    fn notice(&mut self, notification: Notification, connection: &Connection) -> Result<(), String> {
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                if let Ok(params) = serde_json::from_value::<DidOpenTextDocumentParams>(notification.params) {
                    let document = params.text_document;
                    self.set(document.uri.as_str(), document.text, document.version);
                }
            }
            "textDocument/didChange" => {
                if let Ok(params) = serde_json::from_value::<DidChangeTextDocumentParams>(notification.params)
                    && let Some(text) = self.changed(params.text_document.uri.as_str(), params.content_changes)
                {
                    self.set(params.text_document.uri.as_str(), text, params.text_document.version);
                }
            }
            "textDocument/didClose" => {
                if let Ok(params) = serde_json::from_value::<DidCloseTextDocumentParams>(notification.params) {
                    let address = params.text_document.uri.as_str().to_string();
                    self.texts.remove(&address);
                    self.due.remove(&address);
                    publish(connection, params.text_document.uri, Vec::new(), None)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies changes to a text, each to the result of the one before. A change without a range replaces the whole text.
    fn changed(&mut self, address: &str, changes: Vec<TextDocumentContentChangeEvent>) -> Option<String> {
        let mut text = self.texts.remove(address).map(|known| known.text);
        for change in changes {
            match (change.range, &mut text) {
                (Some(range), Some(text)) => {
                    let start = position::offset(text, range.start);
                    let end = position::offset(text, range.end).max(start);
                    text.replace_range(start..end, &change.text);
                }
                (Some(_), None) => {}
                (None, text) => *text = Some(change.text),
            }
        }
        text
    }

    /// Replaces a text. One that is too large for a definition gets no help.
    fn set(&mut self, address: &str, text: String, version: i32) {
        let outline = if text.len() > DEFINITION_BYTES_MAX { Outline::default() } else { Outline::read(&text) };
        let text = Text { text, outline, version: Some(version), found: OnceCell::new() };
        self.texts.insert(address.into(), text);
        self.due.insert(address.into());
    }

    fn publish_due(&mut self, connection: &Connection) -> Result<(), String> {
        for address in std::mem::take(&mut self.due) {
            let Some(open) = self.texts.get(&address) else { continue };
            let found = open.found(self.compiler, &address).iter().map(|found| diagnostic(&open.text, found)).collect();
            if let Ok(uri) = address.parse::<Uri>() {
                publish(connection, uri, found, open.version)?;
            }
        }
        Ok(())
    }

    fn answer(&self, request: Request) -> Response {
        let (id, params) = (request.id, request.params);
        match request.method.as_str() {
            "textDocument/completion" => respond(id, self.completion(params)),
            "textDocument/hover" => respond(id, self.hover(params)),
            "textDocument/definition" => respond(id, self.definition(params)),
            "textDocument/prepareRename" => respond(id, self.prepare_rename(params)),
            "textDocument/rename" => respond(id, self.rename(params)),
            "textDocument/codeAction" => respond(id, self.code_actions(params)),
            method => Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("{method} is not supported")),
        }
    }

    /// Returns the text of a request, and the byte of its position.
    fn place(&self, at: &TextDocumentPositionParams) -> Result<(&Text, usize), String> {
        let address = at.text_document.uri.as_str();
        let text = self.texts.get(address).ok_or_else(|| format!("{address} is not open"))?;
        Ok((text, position::offset(&text.text, at.position)))
    }

    fn completion(&self, params: Json) -> Result<Json, String> {
        let params: CompletionParams = parsed(params)?;
        let at = &params.text_document_position;
        let (text, offset) = self.place(at)?;
        let address = at.text_document.uri.as_str();
        let fields = |document: &Document, step: &Path, reference: &str| {
            self.compiler.fields(address, document, step, reference)
        };
        let (items, is_incomplete) = complete::complete(&text.text, &text.outline, &self.language, &fields, offset);
        to_json(CompletionList { is_incomplete, items })
    }

    fn hover(&self, params: Json) -> Result<Json, String> {
        let params: HoverParams = parsed(params)?;
        let (text, offset) = self.place(&params.text_document_position_params)?;
        to_json(complete::hover(&text.text, &text.outline, &self.language, offset))
    }

    fn definition(&self, params: Json) -> Result<Json, String> {
        let params: GotoDefinitionParams = parsed(params)?;
        let at = params.text_document_position_params;
        let (Text { text, outline, .. }, offset) = self.place(&at)?;
        let Some((name, _)) = references::step_at(text, outline, offset) else { return Ok(Json::Null) };
        let steps = objects::steps(outline);
        let step = steps.iter().find(|step| step.name == name);
        let range = step.map(|step| position::range(text, &step.entry.value_at));
        to_json(range.map(|range| Location { uri: at.text_document.uri, range }))
    }

    fn prepare_rename(&self, params: Json) -> Result<Json, String> {
        let at: TextDocumentPositionParams = parsed(params)?;
        let (Text { text, outline, .. }, offset) = self.place(&at)?;
        let step = references::step_at(text, outline, offset);
        to_json(step.map(|(_, bytes)| position::range(text, &bytes)))
    }

    fn rename(&self, params: Json) -> Result<Json, String> {
        let params: RenameParams = parsed(params)?;
        let at = params.text_document_position;
        let (Text { text, outline, .. }, offset) = self.place(&at)?;
        let step = references::step_at(text, outline, offset);
        let (old, _) = step.ok_or("only ids of steps can be renamed, at the id or at a reference to it")?;
        let new = params.new_name;
        let places = references::renamed(text, outline, &old, &new)?;
        self.check_rename(&places, &new, at.text_document.uri.as_str())?;
        let edit = |bytes| TextEdit { range: position::range(text, bytes), new_text: new.clone() };
        let edits: Vec<TextEdit> = places.iter().map(edit).collect();
        // The protocol has a map here; lsp-types names the type of its keys.
        #[allow(clippy::mutable_key_type)]
        let changes = HashMap::from([(at.text_document.uri, edits)]);
        to_json(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
    }

    /// Returns the fixes of the diagnostics in a range.
    fn code_actions(&self, params: Json) -> Result<Json, String> {
        let CodeActionParams { text_document, range, .. } = parsed(params)?;
        let address = text_document.uri.as_str();
        let open = self.texts.get(address).ok_or_else(|| format!("{address} is not open"))?;
        let (text, found) = (&open.text, open.found(self.compiler, address));
        let near = found.iter().filter_map(|found| {
            let place = position::of_place(text, found.place?);
            (place.start <= range.end && range.start <= place.end).then_some(found)
        });
        let near = near.take(ACTIONS_MAX);
        let actions = near.filter_map(|found| {
            let (bytes, new_text) = fixes::edit(text, syntax(address), found)?;
            let edits = vec![TextEdit { range: position::range(text, &bytes), new_text }];
            // The protocol has a map here; lsp-types names the type of its keys.
            #[allow(clippy::mutable_key_type)]
            let changes = HashMap::from([(text_document.uri.clone(), edits)]);
            Some(CodeActionOrCommand::CodeAction(CodeAction {
                title: found.help.clone(),
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![diagnostic(text, found)]),
                edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
                ..CodeAction::default()
            }))
        });
        to_json(actions.collect::<Vec<_>>())
    }

    /// Refuses a rename after which the definition has errors that it does not have now: a place was missed, or was
    /// none.
    fn check_rename(&self, places: &[std::ops::Range<usize>], new: &str, address: &str) -> Result<(), String> {
        let open = self.texts.get(address).ok_or_else(|| format!("{address} is not open"))?;
        let mut changed = open.text.clone();
        for place in places.iter().rev() {
            changed.replace_range(place.clone(), new);
        }
        let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
        let before = open.found(self.compiler, address).iter().filter(is_error).count();
        let found = self.compiler.check(address, &changed, syntax(address));
        let after: Vec<&Diagnostic> = found.iter().filter(is_error).collect();
        match after.first() {
            Some(error) if after.len() > before => Err(format!("the rename would break the definition: {error}")),
            _ => Ok(()),
        }
    }
}

fn syntax(address: &str) -> Syntax {
    if address.ends_with(".json") { Syntax::Json } else { Syntax::Guess }
}

fn diagnostic(text: &str, found: &Diagnostic) -> LspDiagnostic {
    let help = if found.help.is_empty() { String::new() } else { format!("; {}", found.help) };
    LspDiagnostic {
        range: found.place.map(|place| position::of_place(text, place)).unwrap_or_default(),
        severity: Some(match found.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(found.code.into())),
        source: Some("mainspring".into()),
        message: format!("{}{help}", found.message),
        ..LspDiagnostic::default()
    }
}

fn publish(
    connection: &Connection,
    uri: Uri,
    diagnostics: Vec<LspDiagnostic>,
    version: Option<i32>,
) -> Result<(), String> {
    let params = PublishDiagnosticsParams { uri, diagnostics, version };
    let method = "textDocument/publishDiagnostics".to_string();
    send(connection, Message::Notification(Notification { method, params: to_json(params)? }))
}

fn send(connection: &Connection, message: Message) -> Result<(), String> {
    connection.sender.send(message).map_err(|_| "the client has closed the connection".into())
}

fn respond(id: RequestId, result: Result<Json, String>) -> Response {
    match result {
        Ok(result) => Response::new_ok(id, result),
        Err(why) => Response::new_err(id, ErrorCode::InvalidParams as i32, why),
    }
}

fn parsed<T: serde::de::DeserializeOwned>(params: Json) -> Result<T, String> {
    serde_json::from_value(params).map_err(|error| format!("the request cannot be read: {error}"))
}

fn to_json(value: impl serde::Serialize) -> Result<Json, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}
