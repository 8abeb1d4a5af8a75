//! Random choices of tests, reproducible by their seed.

/// A small random generator.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Incompressible bytes that depend on the seed.
pub fn noise(mut seed: u64, length: usize) -> Vec<u8> {
    seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()
    };
    let bytes = std::iter::repeat_with(next).flatten();
    bytes.take(length).collect()
}

/// A number from an environment variable, or its default.
pub fn number(variable: &str, otherwise: u64) -> u64 {
    let asked = std::env::var(variable).ok();
    asked.map_or(otherwise, |asked| asked.parse().expect("a number"))
}
