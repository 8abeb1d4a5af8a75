//! The fields of requests and their types, found with serde.

use super::Operation;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::VecDeque;

/// One field of a request.
pub(super) struct Field {
    /// Its name, with the names of the enclosing fields.
    pub path: String,
    /// The names of the types that it is made of.
    types: Vec<&'static str>,
    /// Its type in words; empty if it has fields of its own.
    pub shape: String,
}

impl Field {
    /// Whether it is a host path.
    pub fn names_the_host(&self) -> bool {
        self.types.contains(&"HostPath")
    }

    /// A value that such a field accepts.
    fn example(&self) -> Value {
        match self.shape.as_str() {
            // Also the form of call handles.
            "text" => json!("0".repeat(32)),
            "number" => json!(0),
            "true or false" => json!(false),
            "" => json!({}),
            shape if shape.starts_with("list") => json!([]),
            shape if shape.starts_with("map") => json!({}),
            shape => json!(shape.split('`').nth(1)),
        }
    }
}

/// The smallest valid request: a value for every field without a default. Serde's errors name one missing field after the
/// other.
pub(super) fn smallest<O: Operation>() -> Map<String, Value> {
    let fields = fields_of::<O>();
    let mut request = Map::new();
    while let Err(error) = serde_json::from_value::<O>(Value::Object(request.clone())) {
        let error = error.to_string();
        let name = error.strip_prefix("missing field `");
        let name = name.and_then(|rest| rest.split('`').next());
        let field = fields.iter().find(|field| Some(&*field.path) == name);
        let Some(field) = field.filter(|field| !request.contains_key(&field.path)) else {
            break;
        };
        request.insert(field.path.clone(), field.example());
    }
    request
}

/// A path to a field: the index of a field or variant at every struct or enum.
type Way = Vec<usize>;

/// Every field of a request type. Each is found by a separate attempt to deserialize, which follows one path and fails at
/// its end.
pub(super) fn fields_of<O: Operation>() -> Vec<Field> {
    let mut ways: VecDeque<Way> = VecDeque::from([Way::new()]);
    let mut fields = Vec::new();
    while let Some(way) = ways.pop_front() {
        let seen = RefCell::new(Seen::default());
        let look = Look {
            way: &way,
            seen: &seen,
        };
        // It always fails at the end of the path.
        let _ = O::deserialize(look);
        let seen = seen.into_inner();
        for number in 0..seen.below {
            ways.push_back(way.iter().copied().chain([number]).collect());
        }
        fields.push(Field {
            path: seen.names.join("."),
            types: seen.types,
            shape: seen.shape,
        });
    }
    fields
}

#[derive(Default)]
struct Seen {
    names: Vec<&'static str>,
    types: Vec<&'static str>,
    /// How many fields or variants there are at the end of the path.
    below: usize,
    shape: String,
}

#[derive(Copy, Clone)]
struct Look<'a> {
    way: &'a [usize],
    seen: &'a RefCell<Seen>,
}

type Error = serde::de::value::Error;

fn over<T>() -> Result<T, Error> {
    Err(serde::de::Error::custom("looked at"))
}

impl<'a> Look<'a> {
    /// The next step at a struct or an enum; `None` at the end of the path.
    fn step(self, names: &'static [&'static str]) -> Option<(&'static str, Look<'a>)> {
        let Some((number, way)) = self.way.split_first() else {
            self.seen.borrow_mut().below = names.len();
            return None;
        };
        self.seen.borrow_mut().names.push(names[*number]);
        let seen = self.seen;
        Some((names[*number], Look { way, seen }))
    }

    fn note(self, name: &'static str) {
        self.seen.borrow_mut().types.push(name);
    }

    /// Records the type, and stops.
    fn end<T>(self, shape: &str) -> Result<T, Error> {
        self.seen.borrow_mut().shape.push_str(shape);
        over()
    }
}

impl<'de> Deserializer<'de> for Look<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.end("number")
    }

    fn deserialize_bool<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.end("true or false")
    }

    fn deserialize_str<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.end("text")
    }

    fn deserialize_string<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.end("text")
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.note(name);
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.seen.borrow_mut().shape.push_str("list of ");
        visitor.visit_seq(Inside(self))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.seen.borrow_mut().shape.push_str("map of text to ");
        visitor.visit_map(Pairs {
            key: "key",
            value: self,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.step(fields) {
            Some((key, value)) => visitor.visit_map(Pairs { key, value }),
            None => {
                self.note(name);
                over()
            }
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.step(variants) {
            Some((variant, inside)) => visitor.visit_enum(Chosen { variant, inside }),
            None => {
                self.note(name);
                self.end(&format!("`{}`", variants.join("`, `")))
            }
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes byte_buf unit
        unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// A list with one element.
struct Inside<'a>(Look<'a>);

impl<'de> SeqAccess<'de> for Inside<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        seed.deserialize(self.0).map(Some)
    }
}

/// A struct or map with one entry.
struct Pairs<'a> {
    key: &'static str,
    value: Look<'a>,
}

impl<'de> MapAccess<'de> for Pairs<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let key: StrDeserializer<'_, Error> =
            serde::de::IntoDeserializer::into_deserializer(self.key);
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.value)
    }
}

struct Chosen<'a> {
    variant: &'static str,
    inside: Look<'a>,
}

impl<'de, 'a> EnumAccess<'de> for Chosen<'a> {
    type Error = Error;
    type Variant = Look<'a>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Look<'a>), Error> {
        let name: StrDeserializer<'_, Error> =
            serde::de::IntoDeserializer::into_deserializer(self.variant);
        Ok((seed.deserialize(name)?, self.inside))
    }
}

impl<'de> VariantAccess<'de> for Look<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        over()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Inside(self))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.step(fields) {
            Some((key, value)) => visitor.visit_map(Pairs { key, value }),
            None => over(),
        }
    }
}
