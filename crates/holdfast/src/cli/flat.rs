//! Converts any response to CSV (RFC 4180): the content of `--json`, with a line for each object.
//!
//! The columns are the fields in the order in which they are declared; a field of a field is called
//! `field.inner`. Values are those of JSON: bytes and milliseconds, not `10 GiB`.

use std::fmt;

use csv::{Terminator, Writer, WriterBuilder};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, de};

use super::failure::Failure;

/// Separates the elements of a list in one field.
const PARTS: &str = " ";

/// A value of JSON that keeps its fields in order.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// Null is empty, like an absent field.
    Plain(String),
    List(Vec<Value>),
    Fields(Vec<(String, Value)>),
}

/// Returns the lines of a response. An empty list has no lines, because its fields are unknown.
///
/// # Errors
/// If the response can't be written, which never happens with those of the interface.
pub fn text<T: Serialize>(answer: &T) -> Result<String, Failure> {
    let lines = lines(&value(answer)?).map_err(|error| refuse(&error))?;
    String::from_utf8(lines).map_err(|error| refuse(&error))
}

/// Returns the fields of one object, with the names of the columns.
///
/// # Errors
/// As for [`text`].
pub fn fields<T: Serialize>(object: &T) -> Result<Vec<(String, String)>, Failure> {
    value(object).map(|object| flattened(&object))
}

fn value<T: Serialize>(answer: &T) -> Result<Value, Failure> {
    let json = serde_json::to_string(answer).map_err(|error| refuse(&error))?;
    serde_json::from_str(&json).map_err(|error| refuse(&error))
}

fn refuse(error: &dyn fmt::Display) -> Failure {
    Failure::Machine(format!("can't write CSV: {error}"))
}

/// Returns a writer with the line endings of RFC 4180.
pub fn writer<W: std::io::Write>(out: W) -> Writer<W> {
    WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out)
}

fn lines(value: &Value) -> Result<Vec<u8>, csv::Error> {
    let one = std::slice::from_ref(value);
    let objects = match value {
        Value::List(objects) => objects,
        _ => one,
    };
    let flat: Vec<Vec<(String, String)>> = objects.iter().map(flattened).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in flat.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut table = writer(Vec::new());
    if !columns.is_empty() {
        table.write_record(&columns)?;
    }
    for object in &flat {
        let field = |column: &&str| object.iter().find(|(name, _)| name == column);
        table.write_record(columns.iter().map(|c| field(c).map_or("", |(_, text)| text)))?;
    }
    table.into_inner().map_err(|error| error.into_error().into())
}

fn flattened(object: &Value) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    flatten("", object, &mut fields);
    fields
}

fn flatten(name: &str, value: &Value, into: &mut Vec<(String, String)>) {
    match value {
        Value::Fields(fields) => {
            for (inner, value) in fields {
                let name = if name.is_empty() { inner.clone() } else { format!("{name}.{inner}") };
                flatten(&name, value, into);
            }
        }
        // A response that is not an object has one column.
        other => into.push((if name.is_empty() { "value" } else { name }.to_owned(), other.text())),
    }
}

impl Value {
    /// Returns the text in one field: `name=value` for the fields of an object, the elements of a
    /// list, separated by blanks.
    fn text(&self) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::List(parts) => parts.iter().map(Self::text).collect::<Vec<_>>().join(PARTS),
            Self::Fields(_) => {
                let part = |(name, text): (String, String)| format!("{name}={text}");
                flattened(self).into_iter().map(part).collect::<Vec<_>>().join(",")
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InOrder)
    }
}

/// Collects values in their order.
struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Plain(String::new()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Plain(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Plain(value.to_string()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Plain(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Plain(value.to_string()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Plain(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_element()? {
            parts.push(part);
        }
        Ok(Value::List(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Value::Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Inner {
        zeta: u64,
        alpha: Option<f64>,
    }

    #[derive(Serialize)]
    struct Outer {
        name: &'static str,
        inner: Inner,
        words: Vec<&'static str>,
        parts: Vec<Inner>,
        #[serde(skip_serializing_if = "Option::is_none")]
        more: Option<bool>,
    }

    fn outer(name: &'static str, more: Option<bool>) -> Outer {
        let inner = |zeta, alpha| Inner { zeta, alpha };
        let parts = vec![inner(3, Some(0.5)), inner(4, None)];
        Outer { name, inner: inner(1 << 40, None), words: vec!["a", "b"], parts, more }
    }

    #[test]
    fn a_list_has_a_line_for_each_object_and_columns_in_declared_order() {
        let list = [outer("plain", None), outer("a \"b\", c", Some(true))];
        let expected = "name,inner.zeta,inner.alpha,words,parts,more\r\n\
                        plain,1099511627776,,a b,\"zeta=3,alpha=0.5 zeta=4,alpha=\",\r\n\
                        \"a \"\"b\"\", c\",1099511627776,,a b,\"zeta=3,alpha=0.5 zeta=4,alpha=\",\
                        true\r\n";
        assert_eq!(text(&list).unwrap(), expected);
    }

    #[test]
    fn a_value_that_is_not_a_list_is_one_line() {
        assert_eq!(text(&Inner { zeta: 1, alpha: Some(2.5) }).unwrap(), "zeta,alpha\r\n1,2.5\r\n");
        assert_eq!(text(&"word").unwrap(), "value\r\nword\r\n");
        assert_eq!(text(&Vec::<Inner>::new()).unwrap(), "");
    }
}
