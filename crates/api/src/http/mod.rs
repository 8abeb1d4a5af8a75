//! The HTTP face: every operation of the wire's table as a route, answered by the runtime.

mod app;
mod approvals;
mod bodies;
mod caller;
mod care;
mod checkpoints;
mod content;
mod daemon;
mod envelope;
mod envelope_approval;
mod errors;
mod exec;
mod exec_input;
mod exec_options;
mod files;
mod fsck;
mod items;
mod jobs;
mod journal;
mod labels;
mod lanes;
mod mounts;
mod paths;
mod policy;
mod retried;
mod routes;
mod search;
mod telling;
mod transfer;
mod uncommitted;
mod vaults;
mod versions;
mod watch;

pub(crate) use app::App;
use axum::Router;
use caller::Ask;
pub(crate) use caller::Peer;
use routes::Routes;
use std::sync::Arc;

/// All routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    all_routes().into_router(app)
}

fn all_routes() -> Routes {
    let routes = vaults::routes(Routes::new());
    let routes = content::routes(files::routes(routes));
    let routes = transfer::routes(routes);
    let routes = paths::routes(routes);
    let routes = versions::routes(routes);
    let routes = search::routes(routes);
    let routes = labels::routes(routes);
    let routes = checkpoints::routes(routes);
    let routes = exec_input::routes(exec::routes(routes));
    let routes = jobs::routes(routes);
    let routes = approvals::routes(policy::routes(routes));
    let routes = journal::routes(routes);
    let routes = care::routes(routes);
    let routes = mounts::routes(routes);
    daemon::routes(routes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::OPERATIONS;
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_has_a_route() {
        let routed: BTreeSet<_> = all_routes().names().iter().copied().collect();
        let listed: BTreeSet<_> = OPERATIONS.iter().map(|line| line.name).collect();
        assert_eq!(routed, listed);
    }
}
