//! Tags and metadata.

use super::failure::Failure;
use super::files::{at, vault_path};
use super::items;
use super::{Ask, Reply, parse};
use crate::wire::{
    AllTags, Base64, MetaChanged, MetaDelete, MetaGet, MetaImport, MetaImported, MetaList,
    MetaListing, MetaSet, MetaValue, Tag, TagDelete, TagDeleted, TagItem, TagList, TagListAll,
    TagListing, TagRename, TagRenamed, Tagged, Untag,
};
use avfs_runtime::{LabelChange, LabelName, Labelled, Select};

pub(crate) fn tag(ask: &Ask, vault: Select, request: Tag) -> Reply<Tag> {
    let change = LabelChange::Tag(parse(&request.tag)?);
    let path = (&request.path[..], request.path_b64.as_ref());
    let labelled = change_labels(ask, vault, path, &[change])?;
    Ok(tagged(labelled, request.tag, "added"))
}

pub(crate) fn untag(ask: &Ask, vault: Select, request: Untag) -> Reply<Untag> {
    let change = LabelChange::Untag(parse(&request.tag)?);
    let path = (&request.path[..], request.path_b64.as_ref());
    let labelled = change_labels(ask, vault, path, &[change])?;
    Ok(tagged(labelled, request.tag, "removed"))
}

fn tagged(labelled: Labelled, tag: String, action: &str) -> Tagged {
    let (path, path_b64) = items::path(&labelled.path);
    Tagged {
        path,
        path_b64,
        tag,
        action: action.into(),
        version: labelled.version,
    }
}

pub(crate) fn tag_list(ask: &Ask, vault: Select, request: TagList) -> Reply<TagList> {
    let labelled = labels(ask, vault, (&request.path, request.path_b64.as_ref()))?;
    let (path, path_b64) = items::path(&labelled.path);
    Ok(TagListing {
        path,
        path_b64,
        tags: labelled.labels.tags,
    })
}

pub(crate) fn tag_list_all(ask: &Ask, vault: Select, _: TagListAll) -> Reply<TagListAll> {
    let tags = ask.session.tags(vault)?;
    Ok(AllTags {
        count: tags.len(),
        tags: tags
            .into_iter()
            .map(|tag| TagItem {
                name: tag.name,
                file_count: tag.paths,
            })
            .collect(),
    })
}

pub(crate) fn tag_delete(ask: &Ask, vault: Select, request: TagDelete) -> Reply<TagDelete> {
    let file_count = ask.session.retag(vault, &parse(&request.tag)?, None)?;
    Ok(TagDeleted {
        tag: request.tag,
        action: "deleted".into(),
        file_count,
    })
}

pub(crate) fn tag_rename(ask: &Ask, vault: Select, request: TagRename) -> Reply<TagRename> {
    let new: LabelName = parse(&request.new_name)?;
    let old = parse(&request.old_name)?;
    let file_count = ask.session.retag(vault, &old, Some(&new))?;
    Ok(TagRenamed {
        old_name: request.old_name,
        new_name: request.new_name,
        action: "renamed".into(),
        file_count,
    })
}

pub(crate) fn meta_list(ask: &Ask, vault: Select, request: MetaList) -> Reply<MetaList> {
    let labelled = labels(ask, vault, (&request.path, request.path_b64.as_ref()))?;
    let (path, path_b64) = items::path(&labelled.path);
    Ok(MetaListing {
        path,
        path_b64,
        metadata: labelled.labels.metadata,
    })
}

pub(crate) fn meta_get(ask: &Ask, vault: Select, request: MetaGet) -> Reply<MetaGet> {
    let key: LabelName = parse(&request.key)?;
    let labelled = labels(ask, vault, (&request.path, request.path_b64.as_ref()))?;
    let value = labelled.labels.metadata.get(key.as_str()).cloned();
    let value = value.ok_or_else(|| {
        let lost = avfs_runtime::Error::LabelNotFound {
            path: labelled.path.clone(),
            what: "metadata",
            name: request.key.clone(),
        };
        at(&labelled.path)(lost)
    })?;
    let (path, path_b64) = items::path(&labelled.path);
    Ok(MetaValue {
        path,
        path_b64,
        key: request.key,
        value,
    })
}

pub(crate) fn meta_set(ask: &Ask, vault: Select, request: MetaSet) -> Reply<MetaSet> {
    let change = LabelChange::Set(parse(&request.key)?, request.value.clone());
    let path = (&request.path[..], request.path_b64.as_ref());
    let labelled = change_labels(ask, vault, path, &[change])?;
    Ok(meta_changed(
        labelled,
        request.key,
        Some(request.value),
        "set",
    ))
}

pub(crate) fn meta_delete(ask: &Ask, vault: Select, request: MetaDelete) -> Reply<MetaDelete> {
    let change = LabelChange::Unset(parse(&request.key)?);
    let path = (&request.path[..], request.path_b64.as_ref());
    let labelled = change_labels(ask, vault, path, &[change])?;
    Ok(meta_changed(labelled, request.key, None, "deleted"))
}

fn meta_changed(
    labelled: Labelled,
    key: String,
    value: Option<String>,
    action: &str,
) -> MetaChanged {
    let (path, path_b64) = items::path(&labelled.path);
    MetaChanged {
        path,
        path_b64,
        key,
        value,
        action: action.into(),
        version: labelled.version,
    }
}

pub(crate) fn meta_import(ask: &Ask, vault: Select, request: MetaImport) -> Reply<MetaImport> {
    let set = |(key, value): (&String, &String)| {
        Ok::<_, Failure>(LabelChange::Set(parse(key)?, value.clone()))
    };
    let changes: Vec<LabelChange> = request.metadata.iter().map(set).collect::<Result<_, _>>()?;
    let path = (&request.path[..], request.path_b64.as_ref());
    let labelled = change_labels(ask, vault, path, &changes)?;
    let (path, path_b64) = items::path(&labelled.path);
    Ok(MetaImported {
        path,
        path_b64,
        imported: changes.len(),
        action: "imported".into(),
        version: labelled.version,
    })
}

type PathText<'a> = (&'a str, Option<&'a Base64>);

fn labels(ask: &Ask, vault: Select, path: PathText<'_>) -> Result<Labelled, Failure> {
    let path = vault_path(path.0, path.1)?;
    ask.session.labels(vault, &path).map_err(at(&path))
}

fn change_labels(
    ask: &Ask,
    vault: Select,
    path: PathText<'_>,
    changes: &[LabelChange],
) -> Result<Labelled, Failure> {
    let path = vault_path(path.0, path.1)?;
    ask.session.label(vault, &path, changes).map_err(at(&path))
}
