//! Spans that overlap, laid beside each other.

/// Gives each span, a begin and an end, the first lane that is free; spans in one lane don't overlap. Also
/// how many lanes that takes.
pub(super) fn lanes(spans: &[(u64, u64)]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|n| spans[*n]);
    let mut lane_of = vec![0; spans.len()];
    let mut free_from: Vec<u64> = Vec::new();
    for n in order {
        let (begin, end) = spans[n];
        let lane = free_from.iter().position(|free| *free <= begin);
        let lane = lane.unwrap_or_else(|| {
            free_from.push(0);
            free_from.len() - 1
        });
        free_from[lane] = end;
        lane_of[n] = lane;
    }
    (lane_of, free_from.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_lie_beside_each_other() {
        let spans = [(5, 9), (0, 6), (6, 7), (9, 9), (9, 12), (8, 10)];
        let (lane_of, lanes) = lanes(&spans);
        assert_eq!(lanes, 2);
        for (a, x) in spans.iter().enumerate() {
            for (b, y) in spans.iter().enumerate().skip(a + 1) {
                let overlap = x.0 < y.1 && y.0 < x.1;
                assert!(!overlap || lane_of[a] != lane_of[b], "{x:?} and {y:?}");
            }
        }
    }
}
