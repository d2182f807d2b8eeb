//! The part of BER that LDAP uses (RFC 4511, 5.1): definite lengths, and tags of one byte. Anything
//! else in received data is refused, whatever it claims.

/// A boolean, an integer, an octet string, an enumerated value, a sequence and a set.
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const ENUMERATED: u8 = 0x0a;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// Not BER, or not the expected element.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Encodes an element with this tag and content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut made = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => made.push(short),
        _ => {
            let bytes = (length as u64).to_be_bytes();
            let digits: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
            made.push(0x80 | digits.len() as u8);
            made.extend(digits);
        }
    }
    made.extend_from_slice(content);
    made
}

/// Encodes an element that contains others.
pub(super) fn elements(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    element(tag, &parts.concat())
}

/// Encodes a number, as an integer or an enumerated value.
pub(super) fn number(tag: u8, value: u32) -> Vec<u8> {
    // A leading zero keeps it from being negative.
    let bytes = u64::from(value).to_be_bytes();
    let is_leading = |at: &usize| bytes[*at] == 0 && bytes.get(at + 1).is_some_and(|b| *b < 0x80);
    let start = (0..bytes.len()).find(|at| !is_leading(at)).unwrap_or(bytes.len() - 1);
    element(tag, &bytes[start..])
}

/// Returns the length of the element that begins with these bytes; `None` if more bytes are needed.
pub(super) fn length(first: &[u8]) -> Result<Option<usize>, Malformed> {
    let [tag, length, rest @ ..] = first else { return Ok(None) };
    if tag & 0x1f == 0x1f {
        return Err(Malformed);
    }
    if *length < 0x80 {
        return Ok(Some(2 + usize::from(*length)));
    }
    let digits = usize::from(length & 0x7f);
    if !(1..=4).contains(&digits) {
        return Err(Malformed);
    }
    let Some(digits) = rest.get(..digits) else { return Ok(None) };
    let value = digits.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
    Ok(Some(2 + digits.len() + value as usize))
}

/// Reads consecutive elements.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a>(pub(super) &'a [u8]);

impl<'a> Elements<'a> {
    /// Returns the next element: its tag and its content; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u8, &'a [u8])>, Malformed> {
        let [tag, ..] = self.0 else { return Ok(None) };
        let whole = length(self.0)?.filter(|whole| *whole <= self.0.len()).ok_or(Malformed)?;
        let (one, rest) = self.0.split_at(whole);
        let header = match one[1] {
            short if short < 0x80 => 2,
            long => 2 + usize::from(long & 0x7f),
        };
        self.0 = rest;
        Ok(Some((*tag, &one[header..])))
    }

    /// Returns the content of the next element, which must have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        match self.next()? {
            Some((found, content)) if found == tag => Ok(content),
            _ => Err(Malformed),
        }
    }

    /// Returns the next element as a number.
    pub(super) fn number(&mut self, tag: u8) -> Result<u32, Malformed> {
        let bytes = self.expect(tag)?;
        match bytes {
            [] => Err(Malformed),
            [first, ..] if *first >= 0x80 || bytes.len() > 4 => Err(Malformed),
            _ => Ok(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))),
        }
    }

    /// Returns the next element as text.
    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.expect(OCTETS)?.to_vec()).map_err(|_| Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for value in [0, 1, 127, 128, 255, 256, 0x7fff, 0x8000, 0x7fff_ffff] {
            let written = number(INTEGER, value);
            assert_eq!(length(&written), Ok(Some(written.len())));
            assert_eq!(Elements(&written).number(INTEGER), Ok(value), "{value}");
        }
        assert_eq!(number(INTEGER, 128), [2, 2, 0, 128]);
        assert_eq!(number(ENUMERATED, 3), [10, 1, 3]);
        for long in [0, 1, 127, 128, 255, 256, 70_000] {
            let text = "x".repeat(long);
            let written = element(OCTETS, text.as_bytes());
            assert_eq!(length(&written), Ok(Some(written.len())));
            assert_eq!(Elements(&written).text(), Ok(text));
            // No prefix of it is sufficient.
            let part = &written[..written.len() - 1];
            assert_eq!(Elements(part).next().is_err(), long > 0 || part.len() == 1, "{long}");
        }
        // Lengths may be encoded longer than necessary, as some servers do.
        let long = [0x04, 0x84, 0, 0, 0, 2, b'a', b'b'];
        assert_eq!(Elements(&long).text(), Ok("ab".into()));
    }

    #[test]
    fn what_is_no_ber_is_refused() {
        assert_eq!(length(&[]), Ok(None));
        assert_eq!(length(&[0x30]), Ok(None));
        assert_eq!(length(&[0x30, 0x82, 1]), Ok(None));
        for bad in [&[0x1f, 0][..], &[0x30, 0x80], &[0x30, 0x85, 0, 0, 0, 0, 0], &[0x3f, 0x81, 1]] {
            assert_eq!(length(bad), Err(Malformed), "{bad:?}");
        }
        assert!(Elements(&[2, 0]).number(INTEGER).is_err());
        assert!(Elements(&[2, 1, 0xff]).number(INTEGER).is_err(), "negative");
        assert!(Elements(&[2, 5, 0, 0, 0, 0, 1]).number(INTEGER).is_err());
        assert!(Elements(&[4, 1, 0xff]).text().is_err(), "no UTF-8");
        assert!(Elements(&[4, 0]).expect(SEQUENCE).is_err());
        assert!(Elements(&[]).expect(SEQUENCE).is_err());
    }
}
