//! The cached readiness of the store, shared by all probes.

use std::{future::Future, time::Duration};

use tokio::{sync::Mutex, time::Instant};

use crate::http::problem::Result;

/// Lifetime of the cached result of the store. Probes come seconds apart.
const CACHED: Duration = Duration::from_millis(250);

/// Caches the last result of the store. The endpoint is public and has no rate limit, and the probes of a load balancer
/// must not wait behind other callers.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Result<()>)>>);

impl Readiness {
    /// The current or cached result of the store. Concurrent calls share one query.
    pub(crate) async fn check<F: Future<Output = Result<()>>>(&self, ask: impl FnOnce() -> F) -> Result<()> {
        let mut last = self.0.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < CACHED
        {
            return answer.clone();
        }
        let answer = ask().await;
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::{task::yield_now, time::advance};

    use super::*;
    use crate::http::problem::{Code, Problem};

    #[tokio::test(start_paused = true)]
    async fn concurrent_probes_share_one_query() {
        let (readiness, queries) = (Readiness::default(), Cell::new(0));
        let ask = || {
            readiness.check(|| async {
                queries.set(queries.get() + 1);
                yield_now().await;
                if queries.get() == 1 { Err(Problem::new(Code::Unavailable, "no")) } else { Ok(()) }
            })
        };
        let (one, two, three) = tokio::join!(ask(), ask(), ask());
        assert!(one.is_err() && two.is_err() && three.is_err());
        assert_eq!(queries.get(), 1);
        advance(CACHED).await;
        assert_eq!((ask().await, queries.get()), (Ok(()), 2));
    }
}
