//! CHAP (RFC 1994; RFC 7143, 12.1.3), one way and mutual.

use sha2::Digest as _;
use subtle::ConstantTimeEq;

use crate::config::ChapCredentials;
use crate::text;

/// The length of the target's challenges, in bytes.
const CHALLENGE_BYTES: usize = 16;
/// The longest challenge of an initiator (RFC 7143, 12.1.3).
const CHALLENGE_BYTES_MAX: usize = 1024;

/// The hash functions, with their numbers in CHAP_A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md5 = 5,
    Sha1 = 6,
    Sha256 = 7,
}

impl Algorithm {
    fn of(number: &str) -> Option<Self> {
        match number {
            "5" => Some(Self::Md5),
            "6" => Some(Self::Sha1),
            "7" => Some(Self::Sha256),
            _ => None,
        }
    }

    /// Computes the response to a challenge, which proves knowledge of the secret.
    pub(crate) fn response(self, id: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
        let parts = [&[id][..], secret, challenge];
        match self {
            Self::Md5 => hash::<md5::Md5>(&parts),
            Self::Sha1 => hash::<sha1::Sha1>(&parts),
            Self::Sha256 => hash::<sha2::Sha256>(&parts),
        }
    }
}

fn hash<H: md5::Digest>(parts: &[&[u8]]) -> Vec<u8> {
    let mut state = H::new();
    for part in parts {
        state.update(part);
    }
    state.finalize().to_vec()
}

/// A step failed. The login ends with 0201 for any reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

enum State {
    /// AuthMethod=CHAP was accepted; CHAP_A is expected.
    Algorithm,
    /// The challenge was sent; the response is expected.
    Response { algorithm: Algorithm, id: u8, challenge: [u8; CHALLENGE_BYTES] },
    /// The initiator is authenticated.
    Done,
}

/// The target's side of an exchange.
pub(crate) struct Chap {
    credentials: ChapCredentials,
    entropy: [u8; 32],
    state: State,
}

impl Chap {
    /// Begins an exchange; the challenge comes from `entropy`.
    pub(crate) fn new(credentials: ChapCredentials, entropy: [u8; 32]) -> Self {
        Self { credentials, entropy, state: State::Algorithm }
    }

    /// Returns whether the initiator is authenticated.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Processes the CHAP keys of one request, and appends the response.
    pub(crate) fn step(&mut self, keys: &ChapKeys, out: &mut Vec<u8>) -> Result<(), Refused> {
        match self.state {
            State::Algorithm => match keys.algorithms {
                Some(list) => self.challenge(list, out),
                None if keys.is_empty() => Ok(()),
                None => Err(Refused),
            },
            State::Response { algorithm, id, challenge } => {
                if keys.is_empty() {
                    return Ok(());
                }
                self.check(keys, algorithm, id, &challenge)?;
                self.prove(keys, algorithm, &challenge, out)?;
                self.state = State::Done;
                Ok(())
            }
            State::Done if keys.is_empty() => Ok(()),
            State::Done => Err(Refused),
        }
    }

    fn challenge(&mut self, list: &str, out: &mut Vec<u8>) -> Result<(), Refused> {
        let algorithm = list.split(',').find_map(Algorithm::of).ok_or(Refused)?;
        let derived = sha2::Sha256::new()
            .chain_update(b"CHAP challenge")
            .chain_update(self.entropy)
            .finalize();
        let mut challenge = [0; CHALLENGE_BYTES];
        challenge.copy_from_slice(&derived[..CHALLENGE_BYTES]);
        let id = derived[CHALLENGE_BYTES];
        text::push(out, "CHAP_A", &(algorithm as u8).to_string());
        text::push(out, "CHAP_I", &id.to_string());
        text::push(out, "CHAP_C", &text::to_hexadecimal(&challenge));
        self.state = State::Response { algorithm, id, challenge };
        Ok(())
    }

    fn check(
        &self,
        keys: &ChapKeys,
        algorithm: Algorithm,
        id: u8,
        challenge: &[u8],
    ) -> Result<(), Refused> {
        let name = keys.name.ok_or(Refused)?;
        let response = keys.response.and_then(text::binary).ok_or(Refused)?;
        let expected = algorithm.response(id, &self.credentials.secret, challenge);
        let right = name.as_bytes().ct_eq(self.credentials.user.as_bytes())
            & response.as_slice().ct_eq(&expected);
        if bool::from(right) { Ok(()) } else { Err(Refused) }
    }

    /// Answers the initiator's challenge, if it sent one.
    fn prove(
        &self,
        keys: &ChapKeys,
        algorithm: Algorithm,
        ours: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let (id, challenge) = match (keys.id, keys.challenge) {
            (None, None) => return Ok(()),
            (Some(id), Some(challenge)) => (id, challenge),
            _ => return Err(Refused),
        };
        let id = text::number(id).and_then(|id| u8::try_from(id).ok()).ok_or(Refused)?;
        let challenge = text::binary(challenge).ok_or(Refused)?;
        // For a reflected challenge the target would compute the very response that it expects.
        if challenge.is_empty() || challenge.len() > CHALLENGE_BYTES_MAX || challenge == ours {
            return Err(Refused);
        }
        let (user, secret) = self.credentials.mutual.as_ref().ok_or(Refused)?;
        text::push(out, "CHAP_N", user);
        let response = algorithm.response(id, secret, &challenge);
        text::push(out, "CHAP_R", &text::to_hexadecimal(&response));
        Ok(())
    }
}

/// The CHAP keys of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChapKeys<'a> {
    algorithms: Option<&'a str>,
    id: Option<&'a str>,
    challenge: Option<&'a str>,
    name: Option<&'a str>,
    response: Option<&'a str>,
}

impl<'a> ChapKeys<'a> {
    /// Stores a key; returns false if it is not one of CHAP's.
    pub(crate) fn take(&mut self, key: &str, value: &'a str) -> bool {
        let place = match key {
            "CHAP_A" => &mut self.algorithms,
            "CHAP_I" => &mut self.id,
            "CHAP_C" => &mut self.challenge,
            "CHAP_N" => &mut self.name,
            "CHAP_R" => &mut self.response,
            _ => return false,
        };
        *place = Some(value);
        true
    }

    fn is_empty(&self) -> bool {
        self.algorithms.is_none()
            && self.id.is_none()
            && self.challenge.is_none()
            && self.name.is_none()
            && self.response.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chap(entropy: u8) -> Chap {
        let secret = b"twelve bytes or more".to_vec();
        let credentials = ChapCredentials { user: "anna".into(), secret, mutual: None };
        Chap::new(credentials, [entropy; 32])
    }

    fn ask(chap: &mut Chap, keys: ChapKeys<'_>) -> Result<Vec<(String, String)>, Refused> {
        let mut out = Vec::new();
        chap.step(&keys, &mut out).map(|()| text::parse(&out).unwrap())
    }

    /// Runs the first step: returns the target's challenge, and its text.
    fn begin(chap: &mut Chap) -> (Vec<u8>, String) {
        let keys = ChapKeys { algorithms: Some("7"), ..ChapKeys::default() };
        let asked = ask(chap, keys).unwrap();
        let find = |key: &str| &asked.iter().find(|(name, _)| name == key).unwrap().1;
        let (id, challenge) = (find("CHAP_I").parse().unwrap(), text::binary(find("CHAP_C")));
        let challenge = challenge.unwrap();
        let response = Algorithm::Sha256.response(id, b"twelve bytes or more", &challenge);
        (challenge, text::to_hexadecimal(&response))
    }

    /// Otherwise an eavesdropper could replay a recorded login.
    #[test]
    fn each_exchange_has_its_own_challenge() {
        let (mut one, mut other) = (chap(1), chap(2));
        let ((first, response), (second, _)) = (begin(&mut one), begin(&mut other));
        assert_ne!(first, second);
        let keys =
            ChapKeys { name: Some("anna"), response: Some(&response), ..ChapKeys::default() };
        assert_eq!(ask(&mut other, keys), Err(Refused));
        assert!(ask(&mut one, keys).is_ok() && one.is_done());
    }

    #[test]
    fn a_finished_exchange_accepts_nothing_more() {
        let mut chap = chap(1);
        let (_, response) = begin(&mut chap);
        let keys =
            ChapKeys { name: Some("anna"), response: Some(&response), ..ChapKeys::default() };
        assert!(ask(&mut chap, keys).is_ok());
        assert!(ask(&mut chap, ChapKeys::default()).is_ok());
        assert_eq!(ask(&mut chap, keys), Err(Refused));
        let again = ChapKeys { algorithms: Some("5"), ..ChapKeys::default() };
        assert_eq!(ask(&mut chap, again), Err(Refused));
    }
}
