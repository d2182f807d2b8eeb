//! Requests of REST 2.x, for objects that `/v1` does not have.

use hyper::Method;
use serde::de::DeserializeOwned;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::{Client, decode, encode, part};
use super::failure::Failure;

/// The version that is used.
const ROOT: &str = "/api/2.26";
/// The maximum number of names in a request.
pub const NAMES_MAX: usize = 500;

/// A response, or a page of one.
#[derive(Deserialize)]
struct Items<T> {
    items: Vec<T>,
    #[serde(default)]
    more_items_remaining: bool,
    continuation_token: Option<String>,
}

/// An object that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// `None` if there is no such object.
    pub name: Option<String>,
}

/// Returns the names in one request: they are separated by commas, so none may contain one.
///
/// # Errors
/// If a name is empty or has a comma.
pub fn names<S: AsRef<str>>(all: &[S]) -> Result<String, Failure> {
    for name in all.iter().map(AsRef::as_ref) {
        if name.is_empty() || name.contains(',') {
            return Err(Failure::Usage(format!("{name:?} is not a name")));
        }
    }
    Ok(all.iter().map(|name| part(name.as_ref())).collect::<Vec<_>>().join(","))
}

/// Returns the parameters of one name.
///
/// # Errors
/// As for [`names`].
pub fn named(parameter: &str, name: &str) -> Result<String, Failure> {
    Ok(format!("{parameter}={}", names(&[name])?))
}

impl Client {
    /// Returns all items of a list, page by page. `query` has no `?`, and its values are escaped.
    pub fn items<T: DeserializeOwned>(
        &self,
        resource: &str,
        query: &str,
    ) -> Result<Vec<T>, Failure> {
        let mut all = Vec::new();
        let mut mark = None;
        loop {
            let next = mark.map(|mark: String| format!("continuation_token={}", part(&mark)));
            let query: Vec<&str> = [Some(query), next.as_deref()]
                .into_iter()
                .flatten()
                .filter(|q| !q.is_empty())
                .collect();
            let page: Items<T> = self.get(&path(resource, &query.join("&")))?;
            all.extend(page.items);
            mark = page.continuation_token.filter(|_| page.more_items_remaining);
            if mark.is_none() {
                return Ok(all);
            }
        }
    }

    /// Returns the item of a response that has one.
    pub fn item<T: DeserializeOwned>(&self, resource: &str, query: &str) -> Result<T, Failure> {
        first(self.items(resource, query)?)
    }

    /// Creates or changes objects, and returns the items of the response.
    pub fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        resource: &str,
        query: &str,
        body: &impl Serialize,
    ) -> Result<Vec<T>, Failure> {
        let answer = self.send(method, &path(resource, query), &encode(body)?)?;
        decode::<Items<T>>(&answer).map(|answer| answer.items)
    }

    /// Destroys objects, or recovers them.
    pub fn destroy<S: AsRef<str>>(
        &self,
        resource: &str,
        all: &[S],
        destroyed: bool,
    ) -> Result<(), Failure> {
        let body = json!({ "destroyed": destroyed });
        all.chunks(NAMES_MAX).try_for_each(|some| {
            let query = format!("names={}", names(some)?);
            self.change::<IgnoredAny>(Method::PATCH, resource, &query, &body).map(drop)
        })
    }

    /// Eradicates destroyed objects.
    pub fn eradicate<S: AsRef<str>>(&self, resource: &str, all: &[S]) -> Result<(), Failure> {
        all.chunks(NAMES_MAX).try_for_each(|some| {
            self.order(Method::DELETE, resource, &format!("names={}", names(some)?))
        })
    }

    /// Destroys objects, and eradicates them at once if asked to.
    pub fn end<S: AsRef<str>>(
        &self,
        resource: &str,
        all: &[S],
        eradicate: bool,
    ) -> Result<(), Failure> {
        self.destroy(resource, all, true)?;
        if eradicate { self.eradicate(resource, all) } else { Ok(()) }
    }

    /// Sends a request without a body, whose response has no content.
    pub fn order(&self, method: Method, resource: &str, query: &str) -> Result<(), Failure> {
        self.send(method, &path(resource, query), &[]).map(drop)
    }
}

/// Returns the requested item.
///
/// # Errors
/// If the response contains none.
pub fn first<T>(items: Vec<T>) -> Result<T, Failure> {
    let none = || Failure::Unreachable("the response is empty: this is not an array".into());
    items.into_iter().next().ok_or_else(none)
}

fn path(resource: &str, query: &str) -> String {
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{ROOT}/{resource}{mark}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_comma_stays_one_name() {
        assert_eq!(names(&["a", "b.c&d"]).unwrap(), "a,b%2Ec%26d");
        assert_eq!(named("names", "v").unwrap(), "names=v");
        for bad in ["", "a,b"] {
            assert!(matches!(names(&[bad]), Err(Failure::Usage(_))), "{bad}");
        }
    }
}
