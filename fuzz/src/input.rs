//! Interprets a fuzz input as a sequence of choices. Numbers are little endian. Reads beyond the
//! end return zeros, so that each input is valid. [`Script`] writes inputs for [`Input`].

/// The choices that remain.
pub struct Input<'a> {
    bytes: &'a [u8],
}

/// Numbers at which arithmetic breaks.
const CORNERS: [u64; 16] = [
    0,
    1,
    7,
    8,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0xff_ffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    (1 << 40) - 1,
    (1 << 60) - 1,
    i64::MAX as u64,
    u64::MAX,
];

/// The maximum length of content that an input may request by its length alone.
const RUN_BYTES_MAX: usize = 128 << 10;

impl<'a> Input<'a> {
    /// Creates an input that is read from the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns whether nothing remains.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns all that remains.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Returns up to `count` bytes.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.bytes.split_at(count.min(self.bytes.len()));
        self.bytes = left;
        taken
    }

    /// Returns `N` bytes.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.bytes(N);
        let mut array = [0; N];
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// Returns a byte.
    pub fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Returns a choice of two.
    pub fn coin(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    /// Returns a number of two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Returns a number of four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// Returns a number of eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Returns a number below `bound`, which is at most 65,536.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = if bound <= 256 { self.u8().into() } else { usize::from(self.u16()) };
        drawn % bound.max(1)
    }

    /// Returns one of several values.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns a number: a small one, one where arithmetic breaks, or any.
    pub fn number(&mut self) -> u64 {
        let kind = self.u8();
        match kind & 0x0f {
            0 => u64::from(kind >> 4),
            1 => self.u8().into(),
            2 | 3 => self.u16().into(),
            4 => self.u32().into(),
            5 => self.u64(),
            6..=10 => CORNERS[usize::from(kind >> 4)],
            11 | 12 => CORNERS[usize::from(kind >> 4)].wrapping_add(self.u8().into()),
            _ => CORNERS[usize::from(kind >> 4)].wrapping_sub(self.u8().into()),
        }
    }

    /// Returns bytes preceded by their length (2 bytes): the bytes of the input or, for long
    /// content in a short input, one repeated byte.
    pub fn content(&mut self) -> Vec<u8> {
        match self.u8() & 3 {
            0 => {
                let byte = self.u8();
                vec![byte; (usize::from(self.u16()) * 2).min(RUN_BYTES_MAX)]
            }
            _ => {
                let count = self.u16();
                self.bytes(count.into()).to_vec()
            }
        }
    }
}

/// Writes inputs, for the seeds.
#[derive(Clone, Debug, Default)]
pub struct Script(Vec<u8>);

impl Script {
    /// Creates an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes bytes unchanged.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Writes a byte.
    pub fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    /// Writes two bytes.
    pub fn u16(self, value: u16) -> Self {
        self.raw(&value.to_le_bytes())
    }

    /// Writes four bytes.
    pub fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    /// Writes a number for [`Input::number`].
    pub fn number(self, value: u64) -> Self {
        self.u8(5).raw(&value.to_le_bytes())
    }

    /// Writes content for [`Input::content`].
    pub fn content(self, bytes: &[u8]) -> Self {
        self.u8(1).u16(bytes.len() as u16).raw(bytes)
    }

    /// Writes content for [`Input::content`]: `count` times `byte`; `count` is even.
    pub fn run(self, byte: u8, count: usize) -> Self {
        self.u8(0).u8(byte).u16((count / 2) as u16)
    }

    /// Returns the input.
    pub fn done(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_writes_is_read() {
        let script = Script::new().u8(3).u16(500).number(1 << 50).content(b"abc").run(7, 4000);
        let bytes = script.done();
        let mut input = Input::new(&bytes);
        assert_eq!((input.u8(), input.u16(), input.number()), (3, 500, 1 << 50));
        assert_eq!((input.content(), input.content()), (b"abc".to_vec(), vec![7; 4000]));
        assert!(input.is_empty() && input.u64() == 0 && input.content().is_empty());
    }
}
