//! Conditions on the content that a file has before it is written.

use avfs_vault::{Content, Entry, Kind, VaultPath};

use crate::{Error, Result};

/// What must hold of a file when it is written. It is checked on the head that the write replaces, so nothing can come
/// in between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteCondition {
    /// It exists, with one of these.
    pub has: Option<Tags>,
    /// It does not exist, or has none of these.
    pub has_not: Option<Tags>,
}

/// Ids of content, as [`content_tag`] gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags {
    Any,
    Of(Vec<String>),
}

impl Tags {
    pub fn fit(&self, tag: &str) -> bool {
        match self {
            Tags::Any => true,
            Tags::Of(tags) => tags.iter().any(|it| it == tag),
        }
    }
}

/// The id of a file's content: equal content has equal ids.
pub fn content_tag(content: Content) -> String {
    let (Content::Object(id) | Content::Chunks(id)) = content;
    id.to_string()
}

impl WriteCondition {
    pub fn is_empty(&self) -> bool {
        *self == WriteCondition::default()
    }

    /// Whether it holds of what is there.
    pub(crate) fn check(&self, path: &VaultPath, existing: Option<&Entry>) -> Result<()> {
        let tag = existing.map(|entry| match &entry.kind {
            Kind::File { content, .. } => content_tag(*content),
            // Not a file: it exists, and has no content that anybody could name.
            _ => String::new(),
        });
        let has = |tags: &Tags| tag.as_deref().is_some_and(|tag| tags.fit(tag));
        let reason = if self.has.as_ref().is_some_and(|tags| !has(tags)) {
            match tag {
                Some(_) => "it has other content by now",
                None => "it does not exist",
            }
        } else if self.has_not.as_ref().is_some_and(has) {
            "it exists with content that was excluded"
        } else {
            return Ok(());
        };
        let path = path.clone();
        Err(Error::ConditionFailed { path, reason })
    }
}
