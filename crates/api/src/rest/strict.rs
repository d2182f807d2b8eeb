//! Bodies must match their descriptions: an object has its fields by name. A derived `Deserialize`
//! also accepts a list of the fields in their order, which no client intends.

use serde::Deserializer;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Error as _, IntoDeserializer, Visitor};
use serde_json::{Error, Value};

/// A value in which lists are not accepted as objects, at any depth.
pub(super) struct Strict(pub(super) Value);

impl<'de> IntoDeserializer<'de, Error> for Strict {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Strict {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(elements) => {
                let mut list = SeqDeserializer::new(elements.into_iter().map(Strict));
                let value = visitor.visit_seq(&mut list)?;
                list.end().map(|()| value)
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, Strict(value)));
                let mut map = MapDeserializer::new(fields);
                let value = visitor.visit_map(&mut map)?;
                map.end().map(|()| value)
            }
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(_) => self.deserialize_any(visitor),
            _ => Err(Error::custom("it is not an object")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct Outer {
        name: Option<String>,
        inner: Option<Inner>,
        #[serde(default)]
        list: Vec<Inner>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct Inner {
        size: Option<u64>,
    }

    #[test]
    fn a_list_is_not_accepted_as_an_object_at_any_depth() {
        let take = |value: Value| Outer::deserialize(Strict(value)).map_err(|e| e.to_string());
        let whole = json!({"name": "a", "inner": {"size": 1}, "list": [{"size": null}, {}]});
        let wanted = Outer {
            name: Some("a".into()),
            inner: Some(Inner { size: Some(1) }),
            list: vec![Inner::default(), Inner::default()],
        };
        assert_eq!(take(whole), Ok(wanted));
        assert_eq!(take(json!({"name": null})), Ok(Outer::default()));
        for bad in [
            json!([]),
            json!(["a"]),
            json!({"inner": [1]}),
            json!({"list": [[1]]}),
            json!({"list": {"size": 1}}),
            json!({"name": 1}),
            json!(null),
        ] {
            assert!(take(bad.clone()).is_err(), "{bad}");
        }
    }
}
