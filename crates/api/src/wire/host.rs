//! Paths of the host in requests.

use serde::{Deserialize, Serialize};

/// An absolute path of the host, which the daemon opens with its own rights.
///
/// Every field of a request that names the host has this type, and no request of the agent's class has such a field: a
/// test looks at the types of all of them.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct HostPath(pub String);

impl HostPath {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for HostPath {
    fn from(text: String) -> HostPath {
        HostPath(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::Field;
    use super::super::{Class, HostPath, fields_of_all};

    /// What a field for a path of the host would likely be called.
    fn looks_like_the_host(path: &str) -> bool {
        let name = path.rsplit('.').next().unwrap_or_default();
        let name = name.strip_suffix("_b64").unwrap_or(name);
        name == "dir"
            || name.starts_with("host_")
            || ["_dir", "_file"].iter().any(|end| name.ends_with(end))
    }

    fn names_the_host(field: &Field) -> bool {
        field.types.contains(&"HostPath")
    }

    #[test]
    fn no_request_of_an_agent_names_the_host() {
        let mut by_owner = 0;
        for (operation, fields) in fields_of_all() {
            for field in fields {
                let path = &field.path;
                match Class::needed(operation) {
                    Class::Agent => {
                        assert!(!names_the_host(&field), "{operation}: {path}");
                        assert!(!looks_like_the_host(path), "{operation}: {path}");
                    }
                    Class::Owner => by_owner += usize::from(names_the_host(&field)),
                }
            }
        }
        assert!(by_owner >= 6, "import, three exports, mount and unmount");
    }

    #[test]
    fn fields_are_found_however_deep_they_are() {
        let all = fields_of_all();
        let has = |operation: &str, path: &str| {
            let fields = all.iter().filter(|(name, _)| *name == operation);
            fields
                .flat_map(|(_, fields)| fields)
                .any(|field| field.path == path)
        };
        assert!(
            has("job_start", "exec.stdin.text"),
            "in a struct and an enum"
        );
        assert!(has("job_start", "exec.argv_b64"), "in an option");
        assert!(has("find", "tags"), "in a list");
        assert!(has("import", "host_dir"));
        let plain: HostPath = serde_json::from_str("\"/x\"").unwrap();
        assert_eq!(plain.as_str(), "/x", "it travels as text");
    }
}
