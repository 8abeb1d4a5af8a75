//! Views that are kept unused while file verbs move the head, and the bases that views share.

use std::sync::Arc;

use avfs_vault::Vault;

use super::State;
use crate::Result;
use crate::live::shape::Shape;
use crate::live::view::LiveView;
use crate::live::view_base::ViewBase;
use crate::runtime::Runtime;

impl State {
    /// Lets a clean view rest, unless looking at all that it holds takes longer than opening another one.
    pub(super) fn rest(&mut self) -> Result<()> {
        if self.has_grown() {
            return self.close();
        }
        self.resting = self.live.take().or(self.resting.take());
        Ok(())
    }

    /// Gives a clean view up.
    pub(super) fn close(&mut self) -> Result<()> {
        if let Some(view) = self.live.take().or(self.resting.take()) {
            view.close()?.in_background();
        }
        Ok(())
    }

    /// Has the view that rests catch up with the vault; what cannot is given up.
    pub(super) fn wake(
        &mut self,
        runtime: &Runtime,
        vault: &Vault,
        shape: Shape,
    ) -> Result<Option<LiveView>> {
        let Some(mut view) = self.resting.take() else {
            return Ok(None);
        };
        if view.shape == shape && view.is_alive() {
            // It is only for speed: what stands in its way stands in the way of nothing else, or will be met again.
            if let Ok(true) = view.catch_up(runtime, vault) {
                return Ok(Some(view));
            }
        }
        view.close()?.in_background();
        Ok(None)
    }

    /// What the view stands on.
    pub(super) fn base(&self) -> Option<Arc<ViewBase>> {
        let view = self.live.as_ref().or(self.resting.as_ref());
        view.map(|view| view.base.clone())
    }

    /// What another view of the vault may stand on, too: the same, or what that of its parent stands on.
    pub(super) fn bases(&self, runtime: &Runtime, vault: &Vault) -> Vec<Arc<ViewBase>> {
        let parent = vault.parent.as_ref();
        let parent = parent.and_then(|parent| runtime.slot_of(parent.vault)?.base());
        self.base().into_iter().chain(parent).collect()
    }
}
