//! The tool servers of this machine's settings file: `mcpServers`.

use std::sync::Arc;

use mainspring_effects::Executor;
use mainspring_kernel::value::Value;

use crate::{error::CliError, server_settings};

#[cfg(feature = "tools")]
pub(crate) use enabled::pool;

/// Returns the executor of `tool` steps; `None` if no tool server is configured.
pub(crate) fn executor() -> Result<Option<Arc<dyn Executor>>, CliError> {
    let (path, servers) = server_settings::tool_servers()?;
    match servers {
        Value::Null => Ok(None),
        #[cfg(feature = "tools")]
        _ => Ok(Some(Arc::new(mainspring_mcp::executor::Tools::new(enabled::pool_of(&path, &servers)?)))),
        #[cfg(not(feature = "tools"))]
        _ => {
            let message = format!("{}: `mcpServers` needs a build with the feature `tools`", path.display());
            Err(CliError::bad_input("no_tools", message))
        }
    }
}

#[cfg(feature = "tools")]
mod enabled {
    use std::{path::Path, sync::Arc};

    use mainspring_effects::http::{CONNECT_TIMEOUT_DEFAULT, SystemResolver, TlsRoots};
    use mainspring_kernel::value::Value;
    use mainspring_mcp::{
        config, connection::Access, http::HttpAccess, limits::IDLE_TIMEOUT, pool::Pool, process::Uncontained,
    };

    use crate::{error::CliError, runner::http_allow, server_settings};

    /// Returns a pool of the configured servers. None is started before its first use.
    pub(crate) fn pool() -> Result<Arc<Pool>, CliError> {
        let (path, servers) = server_settings::tool_servers()?;
        if servers == Value::Null {
            let message = format!(
                "no tool servers are configured: add `mcpServers: {{NAME: {{command: PROGRAM, args: [...]}}}}` to {}",
                path.display()
            );
            return Err(CliError::bad_input("no_tool_servers", message));
        }
        pool_of(&path, &servers)
    }

    /// Reads the servers of a settings file.
    pub(super) fn pool_of(path: &Path, servers: &Value) -> Result<Arc<Pool>, CliError> {
        let servers = config::servers(servers).map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            let message = format!("the settings in {}: {}", path.display(), errors.join("\n"));
            CliError::bad_input("bad_settings", message)
        })?;
        let http = HttpAccess {
            allow: http_allow()?,
            trust: TlsRoots::default(),
            resolver: Arc::new(SystemResolver),
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
        };
        Ok(Arc::new(Pool::new(servers, Access { start: Arc::new(Uncontained), http }, IDLE_TIMEOUT)))
    }
}
