//! Categories of commands, and sets of them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    ReadOnly,
    Mutating,
    Destructive,
    Networked,
    HostEscapeRisk,
    Interactive,
    Publishing,
    Unknown,
}

impl Category {
    pub const ALL: [Category; 8] = [
        Category::ReadOnly,
        Category::Mutating,
        Category::Destructive,
        Category::Networked,
        Category::HostEscapeRisk,
        Category::Interactive,
        Category::Publishing,
        Category::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Category::ReadOnly => "read_only",
            Category::Mutating => "mutating",
            Category::Destructive => "destructive",
            Category::Networked => "networked",
            Category::HostEscapeRisk => "host_escape_risk",
            Category::Interactive => "interactive",
            Category::Publishing => "publishing",
            Category::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of categories, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Category>", into = "Vec<Category>")]
pub struct Categories(u8);

impl Categories {
    pub fn insert(&mut self, category: Category) {
        self.0 |= bit(category);
    }

    pub fn remove(&mut self, category: Category) {
        self.0 &= !bit(category);
    }

    pub fn contains(self, category: Category) -> bool {
        self.0 & bit(category) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn is_subset(self, of: Categories) -> bool {
        self.0 & !of.0 == 0
    }

    /// In the order in which they are declared.
    pub fn iter(self) -> impl Iterator<Item = Category> {
        Category::ALL
            .into_iter()
            .filter(move |category| self.contains(*category))
    }
}

fn bit(category: Category) -> u8 {
    1 << category as u8
}

impl Extend<Category> for Categories {
    fn extend<I: IntoIterator<Item = Category>>(&mut self, categories: I) {
        categories.into_iter().for_each(|c| self.insert(c));
    }
}

impl FromIterator<Category> for Categories {
    fn from_iter<I: IntoIterator<Item = Category>>(categories: I) -> Categories {
        let mut all = Categories::default();
        all.extend(categories);
        all
    }
}

impl From<Vec<Category>> for Categories {
    fn from(categories: Vec<Category>) -> Categories {
        categories.into_iter().collect()
    }
}

impl From<Categories> for Vec<Category> {
    fn from(categories: Categories) -> Vec<Category> {
        categories.iter().collect()
    }
}

impl fmt::Debug for Categories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
