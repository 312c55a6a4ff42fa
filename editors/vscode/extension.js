// Starts `mainspring lsp` for workflows in YAML and JSON.
const { commands, window, workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

/** The running client; undefined before the start and after a failed one. */
let client;

async function start() {
  const settings = workspace.getConfiguration("mainspring");
  const command = settings.get("path", "mainspring");
  const patterns = settings.get("files", ["**/*.yaml", "**/*.yml", "**/*.json"]);
  const server = { command, args: ["lsp"], transport: TransportKind.stdio };
  const documentSelector = patterns.map((pattern) => ({ scheme: "file", pattern }));
  client = new LanguageClient("mainspring", "Mainspring", server, { documentSelector });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    window.showErrorMessage(`Mainspring: \`${command} lsp\` did not start (${error.message}). Set mainspring.path to the executable.`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

exports.activate = async (context) => {
  const restart = async () => {
    await stop();
    await start();
  };
  context.subscriptions.push(commands.registerCommand("mainspring.restart", restart));
  context.subscriptions.push(workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("mainspring") && restart()));
  await start();
};

exports.deactivate = stop;
