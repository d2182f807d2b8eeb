//! Random bytes.

use std::io;

/// Fills `bytes` from the kernel's generator: fit for keys and challenges.
///
/// # Errors
///
/// If the kernel has no generator, or refuses it (a seccomp filter). Keys may come from no other
/// source, so the caller must give up the operation that needs the bytes.
pub fn entropy(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes)
        .map_err(|error| io::Error::other(format!("the kernel's random generator failed: {error}")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_draws_differ() {
        let (mut first, mut second) = ([0; 32], [0; 32]);
        super::entropy(&mut first).unwrap();
        super::entropy(&mut second).unwrap();
        assert_ne!(first, second);
        assert_ne!(first, [0; 32]);
    }
}
