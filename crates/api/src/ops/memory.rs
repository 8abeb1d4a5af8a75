//! The memory that large requests and answers share.

use super::failure::Failure;
use crate::bounds::{ANSWERS_MAX, BODIES_MAX, TURN_TIME};
use avfs_runtime::ErrorKind;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of reservations.
const UNIT: usize = 1 << 10;

/// The memory for large bodies.
pub(crate) struct Bodies {
    requests: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

impl Bodies {
    pub fn new() -> Bodies {
        Bodies {
            requests: Arc::new(Semaphore::new(BODIES_MAX / UNIT)),
            answers: Arc::new(Semaphore::new(ANSWERS_MAX / UNIT)),
        }
    }

    /// Reserves memory for a request of this size; waits if necessary.
    pub async fn for_request(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
        share(&self.requests, bytes).await
    }

    /// Reserves memory for an answer of this size; waits if necessary.
    pub async fn for_answer(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
        share(&self.answers, bytes).await
    }
}

async fn share(of: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
    let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
    let share = Arc::clone(of).acquire_many_owned(units);
    match tokio::time::timeout(TURN_TIME, share).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(Failure::new(
            ErrorKind::Unavailable,
            "too much data is being transferred at the same time",
        )
        .hint("try again in a moment")),
    }
}
