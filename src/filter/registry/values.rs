//! Values of parameters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A name.
    Name(String),
    /// One number for each class.
    List(Vec<f64>),
}

impl Value {
    /// Reads a value as an option gives it: a number, numbers with commas between, or a name.
    pub(crate) fn parse(text: &str) -> Self {
        if let Ok(number) = text.parse() {
            return Self::Number(number);
        }
        match text.split(',').map(|part| part.trim().parse()).collect::<Result<Vec<f64>, _>>() {
            Ok(list) => Self::List(list),
            Err(_) => Self::Name(text.into()),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::List(list) => f.write_str(&list.iter().map(f64::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

/// Values by parameter name, as a user gives them and as a built filter reports them.
pub type Values = BTreeMap<String, Value>;
