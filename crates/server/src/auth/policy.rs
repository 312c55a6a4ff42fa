//! The requirement of each route: none, an authenticated caller, or a permission. It is read from the OpenAPI
//! description, and a route without one is closed.

use std::collections::HashMap;

use axum::http::Method;
use utoipa::openapi::{OpenApi, path::Operation};

use crate::auth::permission::Permission;

/// OpenAPI extension with the requirement of a route: the name of a permission, [`CREDENTIAL`], or `public`.
pub(crate) const PERMISSION_EXTENSION: &str = "x-permission";

/// Requirement of routes that need authentication and no permission.
pub(crate) const CREDENTIAL: &str = "credential";

/// Requirements of all routes, by path and method.
#[derive(Debug, Default)]
pub(crate) struct RoutePolicies(HashMap<String, Vec<(Method, Requirement)>>);

/// Requirement of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// None, and no rate limit: health probes must never be throttled.
    Health,
    /// None: the route is public.
    Public,
    /// None at the route: the webhook of the path verifies the delivery. Bodies may be larger than those of public routes.
    Webhook,
    /// An authenticated caller, without a permission.
    Credential,
    /// An authenticated caller with this permission.
    Permission(Permission),
}

impl RoutePolicies {
    /// Reads the requirements from the OpenAPI description.
    pub(crate) fn of(description: &OpenApi) -> Self {
        let mut policies: HashMap<String, Vec<_>> = HashMap::new();
        for (path, item) in &description.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::POST, &item.post),
                (Method::PUT, &item.put),
                (Method::PATCH, &item.patch),
                (Method::DELETE, &item.delete),
            ];
            let requirements = operations
                .into_iter()
                .filter_map(|(method, operation)| Some((method, operation.as_ref().and_then(requirement_of)?)));
            policies.entry(path.clone()).or_default().extend(requirements);
        }
        Self(policies)
    }

    /// The requirement of a route by its method and its path pattern; `None` for a closed route.
    pub(crate) fn requirement(&self, method: &Method, path: &str) -> Option<Requirement> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        // The description writes a path parameter with several segments as an ordinary one.
        let (_, requirement) = self.0.get(&path.replace("{*", "{"))?.iter().find(|(known, _)| known == method)?;
        Some(*requirement)
    }
}

fn requirement_of(operation: &Operation) -> Option<Requirement> {
    let name = operation.extensions.as_ref()?.get(PERMISSION_EXTENSION)?.as_str()?;
    match name {
        "public" if is_health(operation) => Some(Requirement::Health),
        "public" if has_tag(operation, "webhooks") => Some(Requirement::Webhook),
        "public" => Some(Requirement::Public),
        CREDENTIAL => Some(Requirement::Credential),
        name => Permission::parse(name).map(Requirement::Permission),
    }
}

/// True for operations that are never rate-limited.
pub(crate) fn is_health(operation: &Operation) -> bool {
    has_tag(operation, "health")
}

fn has_tag(operation: &Operation, name: &str) -> bool {
    operation.tags.iter().flatten().any(|tag| tag == name)
}
