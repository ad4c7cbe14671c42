//! What the process occupies.

/// What it may grow by from the first third of the rounds to the last.
const GROWTH: u64 = 3 << 20;
/// So much of it is used again and again, once a few hundred rounds have filled it.
const FILLED: u64 = 24 << 20;

/// Makes all threads allocate from one heap. Each round makes a hundred threads, and what the C library
/// keeps of as many heaps grows for minutes, and by more than what is looked for.
pub(crate) fn share_a_heap() {
    #[cfg(target_env = "gnu")]
    {
        use std::ffi::c_int;
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        const M_ARENA_MAX: c_int = -8;
        // SAFETY: it may be called at any time.
        unsafe { mallopt(M_ARENA_MAX, 1) };
    }
}

/// What the process occupies, in bytes.
pub(crate) fn resident() -> u64 {
    const PAGE: u64 = 4_096;
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = text.split_whitespace().nth(1).expect("the second number");
    pages.parse::<u64>().expect("a number") * PAGE
}

/// What was occupied after each round.
#[derive(Debug, Default)]
pub(crate) struct Occupied(Vec<u64>);

impl Occupied {
    pub(crate) fn note(&mut self) {
        self.0.push(resident());
    }

    /// The most in the first third and in the last.
    pub(crate) fn thirds(&self) -> (u64, u64) {
        let third = self.0.len().div_ceil(3);
        let most = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
        (
            most(&self.0[..third]),
            most(&self.0[self.0.len() - third..]),
        )
    }

    pub(crate) fn grows(&self) -> bool {
        let (first, last) = self.thirds();
        last >= first.max(FILLED) + GROWTH
    }
}

#[cfg(test)]
mod tests {
    use super::{FILLED, GROWTH, Occupied};

    fn grows(of_round: impl Fn(u64) -> u64) -> bool {
        Occupied((0..300).map(of_round).collect()).grows()
    }

    #[test]
    fn what_is_left_of_each_round_is_noticed_and_what_fills_up_is_not() {
        let each = 2 * GROWTH / 300;
        assert!(grows(|round| FILLED + round * each));
        assert!(grows(|round| 10 * FILLED + round * each));
        assert!(!grows(|round| FILLED.min(round * each * 10)));
        assert!(!grows(|round| 10 * FILLED + (round % 7) * (GROWTH / 8)));
    }
}
