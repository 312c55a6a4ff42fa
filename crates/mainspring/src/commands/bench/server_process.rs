//! The server process for `--via http`, with the executors of the workloads.

use std::{io::Read, path::Path, sync::Arc};

use mainspring_effects::http::{Http, HttpOptions};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{json::compact, value::Value};
use mainspring_server::{
    App, Configured, Outgoing, Settings,
    http::rate_limit::Rates,
    serve as serve_app,
    services::{
        bootstrap, encryption_keys::EncryptionKeys, events::webhook_client::WebhookClient,
        prompts::orchestrators::Orchestrators,
    },
};
use tokio::net::TcpListener;

use super::{
    effects,
    test_store::{self, KEY, StoreUrl},
};
use crate::{commands::up::connections_max, error::CliError, evaluator::evaluator, output::terminal::print_out};

/// Prints address and token, and serves until its input ends.
pub(super) async fn serve(url: &StoreUrl, folder: &Path) -> Result<(), CliError> {
    let failed = |error: std::io::Error| CliError::internal("bench_failed", error.to_string());
    let store = test_store::store_at(url, folder)?;
    let engine = test_store::counting_engine(store, effects::nothing()).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?.to_string();
    let base = format!("http://{address}");
    let rates = Rates { per_token: 0, per_address: 0, trusted_proxies: Vec::new() };
    let (workspaces, release) = (folder.join("workspaces"), env!("CARGO_PKG_VERSION"));
    let connections_max = connections_max(0);
    let settings = Settings {
        base,
        workspaces,
        tools_use_workspaces: false,
        release,
        rates,
        connections_max,
        oidc: None,
        marks: None,
        configured: Configured::default(),
        scenarios: None,
        outgoing: Outgoing {
            webhooks: WebhookClient::new(Arc::new(Http::new(HttpOptions::default()))),
            orchestrators: Orchestrators::default(),
        },
        encryption_keys: Arc::new(EncryptionKeys::of_installation(KEY)),
        clock: now_ms,
    };
    let app = App::new(engine.clone(), evaluator(), settings);
    let token = bootstrap::create_first_organization(app.catalogue(), &KEY)
        .map_err(|problem| CliError::internal("bench_failed", problem.full_message()))?;
    print_out!("{}", compact(&Value::map([("address", address.into()), ("token", token.into())])));
    let input_ends = async {
        let wait = || std::io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = tokio::task::spawn_blocking(wait).await;
    };
    let served = serve_app(listener, app, input_ends).await;
    engine.drain().await;
    served.map_err(failed)
}
