//! The messages of LDAP (RFC 4511) that a login needs.

use super::ber::{
    BOOLEAN, ENUMERATED, Elements, INTEGER, Malformed, OCTETS, SEQUENCE, SET, element, elements,
    number,
};

/// Starts TLS (RFC 4511, 4.14).
const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";
/// Requests no attributes (RFC 4511, 4.5.1.8).
const NO_ATTRIBUTES: &str = "1.1";

/// Which entries a search finds. Values are never part of a text that is parsed, so none of their
/// characters must be escaped as in RFC 4515.
pub(super) enum Filter {
    /// All of these match.
    All(Vec<Self>),
    /// One of these matches.
    Any(Vec<Self>),
    /// An attribute has a value.
    Equal(String, String),
    /// An attribute exists.
    Present(String),
}

impl Filter {
    pub(super) fn equal(attribute: &str, value: &str) -> Self {
        Self::Equal(attribute.into(), value.into())
    }

    fn bytes(&self) -> Vec<u8> {
        let each = |all: &[Self]| all.iter().map(Self::bytes).collect::<Vec<_>>();
        match self {
            Self::All(all) => elements(0xa0, &each(all)),
            Self::Any(all) => elements(0xa1, &each(all)),
            Self::Equal(attribute, value) => elements(0xa3, &[octets(attribute), octets(value)]),
            Self::Present(attribute) => element(0x87, attribute.as_bytes()),
        }
    }
}

/// How deep a search goes below its base.
#[derive(Clone, Copy)]
pub(super) enum Scope {
    /// Only the base.
    Base = 0,
    /// The base and everything below it.
    Subtree = 2,
}

/// A search.
pub(super) struct Search<'a> {
    pub(super) base: &'a str,
    pub(super) scope: Scope,
    pub(super) filter: Filter,
    /// The requested attributes.
    pub(super) attributes: &'a [&'a str],
    /// The most entries.
    pub(super) entries_max: u32,
    /// The time limit of the search, in seconds.
    pub(super) seconds: u32,
}

/// A request.
pub(super) enum Request<'a> {
    /// The identity for later requests: a DN and a password, which is not empty.
    Bind(&'a str, &'a str),
    Search(Search<'a>),
    StartTls,
    /// Ends the connection.
    Unbind,
}

fn octets(text: &str) -> Vec<u8> {
    element(OCTETS, text.as_bytes())
}

impl Request<'_> {
    /// Encodes the message with its number.
    pub(super) fn message(&self, id: u32) -> Vec<u8> {
        let operation = match self {
            Self::Bind(user, password) => {
                let simple = element(0x80, password.as_bytes());
                elements(0x60, &[number(INTEGER, 3), octets(user), simple])
            }
            Self::Search(search) => search.bytes(),
            Self::StartTls => elements(0x77, &[element(0x80, START_TLS)]),
            Self::Unbind => element(0x42, &[]),
        };
        elements(SEQUENCE, &[number(INTEGER, id), operation])
    }
}

impl Search<'_> {
    fn bytes(&self) -> Vec<u8> {
        let wanted = match self.attributes {
            [] => vec![octets(NO_ATTRIBUTES)],
            some => some.iter().map(|attribute| octets(attribute)).collect(),
        };
        let parts = [
            octets(self.base),
            number(ENUMERATED, self.scope as u32),
            // Never follow aliases.
            number(ENUMERATED, 0),
            number(INTEGER, self.entries_max),
            number(INTEGER, self.seconds),
            element(BOOLEAN, &[0]),
            self.filter.bytes(),
            elements(SEQUENCE, &wanted),
        ];
        elements(0x63, &parts)
    }
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// RFC 4511, appendix A; 0 is success.
    pub(super) code: u32,
    /// The server's message.
    pub(super) text: String,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) dn: String,
    /// Attributes with those of their values that are text.
    pub(super) attributes: Vec<(String, Vec<String>)>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Bound(Outcome),
    Entry(Entry),
    /// A reference to another server. It is not followed.
    Reference,
    SearchDone(Outcome),
    Extended(Outcome),
}

impl Answer {
    /// Parses a message to the number of the request and the response.
    pub(super) fn parse(message: &[u8]) -> Result<(u32, Self), Malformed> {
        let mut parts = Elements(Elements(message).expect(SEQUENCE)?);
        let id = parts.number(INTEGER)?;
        let (tag, content) = parts.next()?.ok_or(Malformed)?;
        // Controls may follow: none was requested.
        let mut content = Elements(content);
        let answer = match tag {
            0x61 => Self::Bound(outcome(&mut content)?),
            0x64 => Self::Entry(entry(&mut content)?),
            0x65 => Self::SearchDone(outcome(&mut content)?),
            0x73 => Self::Reference,
            0x78 => Self::Extended(outcome(&mut content)?),
            _ => return Err(Malformed),
        };
        Ok((id, answer))
    }
}

fn outcome(content: &mut Elements<'_>) -> Result<Outcome, Malformed> {
    let code = content.number(ENUMERATED)?;
    content.expect(OCTETS)?;
    let text = String::from_utf8_lossy(content.expect(OCTETS)?).into_owned();
    Ok(Outcome { code, text })
}

fn entry(content: &mut Elements<'_>) -> Result<Entry, Malformed> {
    let dn = content.text()?;
    let mut all = Elements(content.expect(SEQUENCE)?);
    let mut attributes = Vec::new();
    while let Some((tag, attribute)) = all.next()? {
        if tag != SEQUENCE {
            return Err(Malformed);
        }
        let mut attribute = Elements(attribute);
        let (name, mut set) = (attribute.text()?, Elements(attribute.expect(SET)?));
        let mut values = Vec::new();
        while let Some((tag, value)) = set.next()? {
            if tag != OCTETS {
                return Err(Malformed);
            }
            values.extend(String::from_utf8(value.to_vec()));
        }
        attributes.push((name, values));
    }
    Ok(Entry { dn, attributes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(tag: u8, code: u32, text: &str) -> Vec<u8> {
        let parts = [number(ENUMERATED, code), octets(""), octets(text)];
        elements(SEQUENCE, &[number(INTEGER, 7), elements(tag, &parts)])
    }

    fn entry_message() -> Vec<u8> {
        let values = elements(SET, &[octets("anna"), element(OCTETS, &[0xff])]);
        let attribute = elements(SEQUENCE, &[octets("uid"), values]);
        let parts = [octets("uid=anna,dc=x"), elements(SEQUENCE, &[attribute])];
        elements(SEQUENCE, &[number(INTEGER, 2), elements(0x64, &parts)])
    }

    #[test]
    fn requests_are_as_the_standard_has_them() {
        // RFC 4511, 4.2: version 3, a name, simple authentication.
        assert_eq!(
            Request::Bind("cn=a", "b").message(1),
            [0x30, 0x11, 2, 1, 1, 0x60, 0x0c, 2, 1, 3, 4, 4, b'c', b'n', b'=', b'a', 0x80, 1, b'b']
        );
        assert_eq!(Request::Unbind.message(2), [0x30, 5, 2, 1, 2, 0x42, 0]);
        let filter = Filter::All(vec![
            Filter::equal("uid", "*)(uid=*"),
            Filter::Any(vec![Filter::Present("objectClass".into())]),
        ]);
        // The name is a value, whatever characters it contains.
        let bytes = filter.bytes();
        let mut found = Elements(&bytes).expect(0xa0).map(Elements).unwrap();
        let mut equal = Elements(found.expect(0xa3).unwrap());
        assert_eq!(
            (equal.text().unwrap(), equal.text().unwrap()),
            ("uid".into(), "*)(uid=*".into())
        );
        assert_eq!(equal.next(), Ok(None));
        let mut any = Elements(found.expect(0xa1).unwrap());
        assert_eq!(any.expect(0x87), Ok(&b"objectClass"[..]));
    }

    #[test]
    fn answers_are_read() {
        let outcome = |code, text: &str| Outcome { code, text: text.into() };
        let bound = Answer::Bound(outcome(49, "no"));
        assert_eq!(Answer::parse(&result(0x61, 49, "no")), Ok((7, bound)));
        let done = Answer::SearchDone(outcome(0, ""));
        assert_eq!(Answer::parse(&result(0x65, 0, "")), Ok((7, done)));
        let extended = Answer::Extended(outcome(2, "what?"));
        assert_eq!(Answer::parse(&result(0x78, 2, "what?")), Ok((7, extended)));
        let entry = Entry {
            dn: "uid=anna,dc=x".into(),
            // A value that is not text can't match in a login.
            attributes: vec![("uid".into(), vec!["anna".into()])],
        };
        assert_eq!(Answer::parse(&entry_message()), Ok((2, Answer::Entry(entry))));
    }

    /// A server or an impostor may send anything: no response makes the array panic.
    #[test]
    fn what_is_no_answer_is_refused() {
        for whole in [entry_message(), result(0x61, 49, "no")] {
            for end in 0..whole.len() {
                assert!(Answer::parse(&whole[..end]).is_err(), "{end}");
            }
            // Each byte is replaced by each other value.
            for at in 0..whole.len() {
                for byte in 0..=255 {
                    let mut other = whole.clone();
                    other[at] = byte;
                    let _ = Answer::parse(&other);
                }
            }
        }
        // So deep that a recursive parser would overflow its stack.
        let mut deep = Vec::new();
        for _ in 0..10_000 {
            deep = elements(SEQUENCE, &[deep]);
        }
        assert_eq!(Answer::parse(&deep), Err(Malformed));
        let bad = elements(SEQUENCE, &[number(INTEGER, 1), element(0x79, &[])]);
        assert_eq!(Answer::parse(&bad), Err(Malformed));
    }
}
