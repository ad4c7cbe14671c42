//! Line numbers from places in the text.

/// The line, from 1, of a place in the text.
pub(crate) fn line_at(text: &str, offset: usize) -> u64 {
    let mut lines = Lines::default();
    lines.advance(text, offset)
}

/// The same for places that only move forward, at the cost of one pass over the text in all.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    offset: usize,
    newlines: u64,
}

impl Lines {
    pub(crate) fn advance(&mut self, text: &str, offset: usize) -> u64 {
        let passed = text.as_bytes().get(self.offset..offset).unwrap_or_default();
        self.newlines += passed.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.offset = self.offset.max(offset);
        self.newlines + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_one_and_only_forward() {
        let text = "a\r\nb\n\nc";
        assert_eq!([0, 2, 3, 5, 6].map(|at| line_at(text, at)), [1, 1, 2, 3, 4]);
        let mut lines = Lines::default();
        assert_eq!([0, 3, 3, 6].map(|at| lines.advance(text, at)), [1, 2, 2, 4]);
    }
}
