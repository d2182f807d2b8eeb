//! Selected fields of an item: a filter or an order uses a few of many.

use serde::ser::{Error as _, Impossible, Serialize, SerializeMap, SerializeStruct, Serializer};
use serde_json::{Error, Map, Value, to_value};

/// Serializes the fields of an item that `wanted` names; the whole item if it has no fields.
pub(super) fn project<T: Serialize>(item: &T, wanted: &[&str]) -> Result<Value, Error> {
    let fields = Fields { wanted, found: Map::new(), key: None };
    match item.serialize(fields) {
        Ok(found) => Ok(Value::Object(found)),
        // It has no fields, or can't be serialized at all: the second attempt shows which.
        Err(_) => to_value(item),
    }
}

/// Collects fields.
struct Fields<'a> {
    wanted: &'a [&'a str],
    found: Map<String, Value>,
    /// The key of the next value in a map, if it is wanted.
    key: Option<String>,
}

impl Fields<'_> {
    fn take<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        if self.wanted.contains(&key) {
            self.found.insert(key.to_owned(), to_value(value)?);
        }
        Ok(())
    }
}

impl SerializeStruct for Fields<'_> {
    type Ok = Map<String, Value>;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.take(key, value)
    }

    fn end(self) -> Result<Self::Ok, Error> {
        Ok(self.found)
    }
}

/// Structs with flattened fields are serialized as maps.
impl SerializeMap for Fields<'_> {
    type Ok = Map<String, Value>;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = match to_value(key)? {
            Value::String(key) => Some(key),
            _ => return Err(no_fields()),
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().ok_or_else(no_fields)?;
        self.take(&key, value)
    }

    fn end(self) -> Result<Self::Ok, Error> {
        Ok(self.found)
    }
}

fn no_fields() -> Error {
    Error::custom("it has no fields")
}

type No = Impossible<Map<String, Value>, Error>;

/// Refuses everything that has no fields.
macro_rules! refused {
    ($($name:ident($($type:ty),*);)*) => {
        $(fn $name(self, $(_: $type),*) -> Result<Map<String, Value>, Error> {
            Err(no_fields())
        })*
    };
}

impl<'a> Serializer for Fields<'a> {
    type Ok = Map<String, Value>;
    type Error = Error;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = Fields<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = No;

    refused! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Self::Ok, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Self::Ok, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Self::Ok, Error> {
        Err(no_fields())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<No, Error> {
        Err(no_fields())
    }

    fn serialize_tuple(self, _: usize) -> Result<No, Error> {
        Err(no_fields())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<No, Error> {
        Err(no_fields())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<No, Error> {
        Err(no_fields())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<No, Error> {
        Err(no_fields())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Inner {
        of: u8,
    }

    #[derive(Serialize)]
    struct Item {
        name: &'static str,
        size: u64,
        none: Option<u8>,
        inner: Inner,
    }

    #[derive(Serialize)]
    struct Flat {
        #[serde(flatten)]
        item: Item,
        r#virtual: bool,
    }

    #[test]
    fn only_wanted_fields_are_serialized() {
        let item = || Item { name: "a", size: 1, none: None, inner: Inner { of: 2 } };
        let wanted = ["name", "inner", "never", "virtual"];
        let found = project(&item(), &wanted).unwrap();
        assert_eq!(found, json!({"name": "a", "inner": {"of": 2}}));
        assert_eq!(project(&item(), &["none"]).unwrap(), json!({ "none": null }));
        assert_eq!(project(&Some(item()), &["size"]).unwrap(), json!({ "size": 1 }));
        let flat = Flat { item: item(), r#virtual: true };
        let found = project(&flat, &wanted).unwrap();
        assert_eq!(found, json!({"name": "a", "inner": {"of": 2}, "virtual": true}));
        assert_eq!(project(&json!({"name": 1, "size": 2}), &["name"]).unwrap(), json!({"name": 1}));
    }

    #[test]
    fn a_value_without_fields_is_serialized_completely() {
        assert_eq!(project(&"text", &["name"]).unwrap(), json!("text"));
        assert_eq!(project(&[1, 2], &["name"]).unwrap(), json!([1, 2]));
        assert_eq!(project(&None::<u8>, &["name"]).unwrap(), json!(null));
    }
}
