//! Secrets of a home. They are the owner's, and no answer has a value.

use super::exec_options::hosts;
use super::{Ask, Reply, items, parse};
use crate::wire::{SecretItem, SecretList, SecretListing, SecretRemove, SecretSet};
use avfs_runtime::{NewSecret, Secret, SecretForm, SecretInfo, SecretValue, Time, VaultPattern};

pub(crate) fn set(ask: &Ask, request: SecretSet) -> Reply<SecretSet> {
    let vaults = request.vaults.iter().map(|text| VaultPattern::parse(text));
    let new = NewSecret {
        name: parse(&request.name)?,
        value: SecretValue::new(request.value.into_inner())?,
        hosts: hosts(&request.hosts)?,
        form: SecretForm::new(request.header.as_deref(), request.basic.as_deref())?,
        plain_http: request.allow_plain_http,
        vaults: vaults.collect::<Result<_, _>>()?,
    };
    Ok(item(&ask.session.secret_set(&new)?))
}

pub(crate) fn list(ask: &Ask, _: SecretList) -> Reply<SecretList> {
    let secrets = ask.session.secret_list()?;
    Ok(SecretListing {
        secrets: secrets.iter().map(item).collect(),
    })
}

pub(crate) fn remove(ask: &Ask, request: SecretRemove) -> Reply<SecretRemove> {
    let secret = ask.session.secret_remove(&parse(&request.name)?)?;
    // What is gone opens nothing.
    let info = SecretInfo {
        secret,
        opens: false,
    };
    Ok(item(&info))
}

fn item(info: &SecretInfo) -> SecretItem {
    let SecretInfo { secret, opens } = info;
    let Secret { name, form, .. } = secret;
    let opened = secret.opened();
    SecretItem {
        name: name.to_string(),
        hosts: secret
            .hosts
            .rules()
            .iter()
            .map(ToString::to_string)
            .collect(),
        opened: opened.iter().map(ToString::to_string).collect(),
        header: form.to_string(),
        basic: match form {
            SecretForm::Basic { user } => Some(user.clone()),
            SecretForm::Header { .. } => None,
        },
        allow_plain_http: secret.plain_http,
        vaults: secret.vaults.iter().map(ToString::to_string).collect(),
        placeholder: name.placeholder(),
        set_at: items::time(Time {
            secs: secret.set_at,
            nanos: 0,
        }),
        usable: *opens,
    }
}
