//! The HTTP face: every row of the table as a route.

mod bodies;
mod errors;
mod events;
mod guard;
mod routes;
mod streams;
mod telling;
mod watch;

use crate::ops::app::App;
use crate::table::each_row;
use axum::Router;
use routes::Routes;
use std::sync::Arc;

/// All routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    let mut routes = Routes::default();
    each_row(&mut routes);
    routes.into_router(app)
}
