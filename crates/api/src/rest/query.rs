//! The parameters of a request. A handler takes the parameters that it knows; the others are
//! refused, so that a misspelt parameter never widens the effect of a request.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::Refused;
use super::strict::Strict;
use crate::Interface;

/// The maximum number of names of a request: the changes must fit one commit of the store.
pub(crate) const NAMES_MAX: usize = 500;
/// The maximum number of parameters of a request: no request has that many.
const PARAMETERS_MAX: usize = 64;

/// The parameters of a request that have not been taken yet.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses the part of a URL after the `?`.
    pub(crate) fn parse(text: &str) -> Result<Self, Refused> {
        let mut all = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if all.len() == PARAMETERS_MAX {
                return Err(Refused::bad("", "There are too many query parameters."));
            }
            if all.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                return Err(Refused::bad(&name, "The query parameter is given twice."));
            }
        }
        Ok(Self(all))
    }

    /// Takes the parameters of clients of several arrays: the name of the array, which must be this
    /// one; and whether parts of a response may be missing, which they never are.
    fn in_context(mut self, array: impl FnOnce() -> String) -> Result<Self, Refused> {
        self.flag("allow_errors")?;
        match self.text("context_names").as_deref() {
            None | Some("") => Ok(self),
            Some(name) if unquoted(name).eq_ignore_ascii_case(&array()) => Ok(self),
            Some(_) => Err(Refused::unsupported("context_names", "Managing another array")),
        }
    }

    /// Takes a parameter.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Takes a parameter that is a comma-separated list without empty parts; an empty list if it is
    /// absent or empty.
    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<String>, Refused> {
        let Some(text) = self.text(name).filter(|text| !text.is_empty()) else {
            return Ok(Vec::new());
        };
        let parts: Vec<String> = text.split(',').map(|part| part.trim().to_owned()).collect();
        if parts.len() > NAMES_MAX {
            let text = format!("At most {NAMES_MAX} names can be given at once.");
            return Err(Refused::bad(name, text));
        }
        if parts.iter().any(String::is_empty) {
            return Err(Refused::bad(name, "A name in the list is empty."));
        }
        Ok(parts)
    }

    /// Takes a parameter that is `true` or `false`.
    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, Refused> {
        let flag = |text: String| match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Refused::bad(name, "The query parameter is `true` or `false`.")),
        };
        self.text(name).map(flag).transpose()
    }

    /// Takes a parameter that is a number, from 0.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>, Refused> {
        let Some(text) = self.text(name) else { return Ok(None) };
        // The range that the description gives for whole numbers.
        let number = text.parse().ok().filter(|number| i64::try_from(*number).is_ok());
        let refuse = || Refused::bad(name, "The query parameter is a whole number, from 0.");
        number.ok_or_else(refuse).map(Some)
    }

    /// Refuses the parameters that were not taken.
    pub(crate) fn end(self) -> Result<(), Refused> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(Refused::bad(&name, "Invalid query parameter.")),
        }
    }

    /// Takes a list that must not be empty.
    pub(crate) fn required(&mut self, name: &str) -> Result<Vec<String>, Refused> {
        let names = self.list(name)?;
        if names.is_empty() {
            return Err(Refused::bad(name, format!("The query parameter `{name}` is required.")));
        }
        Ok(names)
    }
}

/// Removes the quotes that some clients put around a text.
pub(crate) fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('\'').or_else(|| inner('"')).unwrap_or(text)
}

impl FromRequestParts<Arc<Interface>> for Query {
    type Rejection = Refused;

    async fn from_request_parts(
        parts: &mut Parts,
        interface: &Arc<Interface>,
    ) -> Result<Self, Refused> {
        let query = Self::parse(parts.uri.query().unwrap_or_default())?;
        query.in_context(|| interface.array.name())
    }
}

/// The body of a request: JSON, whatever its declared type. No body means an empty object, because
/// several requests have only parameters.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> axum::extract::FromRequest<S> for Body<T> {
    type Rejection = Refused;

    async fn from_request(
        request: axum::extract::Request,
        state: &S,
    ) -> Result<Self, Self::Rejection> {
        let bytes = axum::body::Bytes::from_request(request, state).await;
        let bytes =
            bytes.map_err(|refused| Refused::unreadable(refused.status(), &refused.body_text()))?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        // The text of the error could quote a secret: it is returned only if the syntax is wrong.
        let body = serde_json::from_slice(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => Refused::bad("", unquote_values(&error)),
            _ => Refused::bad("", "The body is not JSON."),
        })?;
        let strict = serde_json::from_slice(text).and_then(|body| T::deserialize(Strict(body)));
        match strict {
            Ok(_) => Ok(Self(body)),
            Err(_) => Err(Refused::bad("", "The body has a list where an object is needed.")),
        }
    }
}

/// Describes what is wrong with a body, without the values in it.
fn unquote_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let field = text.split('`').nth(1).unwrap_or_default();
    if text.starts_with("unknown field") {
        return format!("The field `{field}` is not supported by this array, or misspelt.");
    }
    if text.starts_with("missing field") {
        return format!("The field `{field}` is missing.");
    }
    let (line, column) = (error.line(), error.column());
    format!("A value of the body has the wrong type, at line {line}, column {column}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parameters_are_refused() {
        let mut query = Query::parse("names=a%2Cb,c&destroyed=True&limit=5").unwrap();
        assert_eq!(query.list("names").unwrap(), ["a", "b", "c"]);
        assert_eq!(query.flag("destroyed").unwrap(), Some(true));
        assert_eq!(query.number("offset").unwrap(), None);
        assert!(query.end().is_err());
        assert!(Query::parse("names=a&names=b").is_err());
        let in_context =
            |text: &str| Query::parse(text).and_then(|query| query.in_context(|| "me".into()));
        for good in ["", "context_names=", "context_names=Me&allow_errors=false", "x=y"] {
            assert!(in_context(good).is_ok(), "{good}");
        }
        for bad in ["context_names=other", "context_names=me,other", "allow_errors=maybe"] {
            assert!(in_context(bad).is_err(), "{bad}");
        }
        for bad in ["names=a,,b", "names=,"] {
            assert!(Query::parse(bad).unwrap().list("names").is_err(), "{bad}");
        }
        assert!(Query::parse("names=").unwrap().required("names").is_err());
        assert!(Query::parse("limit=-1").unwrap().number("limit").is_err());
    }

    #[test]
    fn quotes_around_a_text_are_removed() {
        assert_eq!((unquoted("'a'"), unquoted("\"a\""), unquoted("a'")), ("a", "a", "a'"));
    }
}
