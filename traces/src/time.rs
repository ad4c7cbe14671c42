//! Times from text, exactly.
//!
//! A Chrome trace counts microseconds with fractions, since boot or since 1970. The latter need 20
//! digits for nanoseconds, which an `f64` does not have, so the decimals are read as they stand,
//! as picoseconds; what is finer is cut off. Start and duration are added before they are rounded:
//! rounding keeps order, so kernels that followed one another still do.

/// The last moment there is: 2^64 - 1 nanoseconds, in picoseconds.
pub(crate) const LAST_PS: u128 = u64::MAX as u128 * 1000;

/// Picoseconds from a JSON number of microseconds, unless it is negative, beyond [`LAST_PS`], or
/// no number.
pub(crate) fn micros_to_ps(text: &str) -> Option<u128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !fraction.is_none_or(all_digits) {
        return None;
    }
    // Where the decimal point stands among the digits, once the exponent and the 10^6 picoseconds
    // of a microsecond have moved it.
    let point = exponent
        .saturating_add(6)
        .saturating_add(i64::try_from(whole.len()).ok()?);
    let mut digits = whole.bytes().chain(fraction.unwrap_or_default().bytes());
    let mut ps: u128 = 0;
    for _ in 0..point {
        let digit = match digits.next() {
            Some(digit) => digit - b'0',
            None if ps == 0 => break,
            None => 0,
        };
        ps = ps * 10 + u128::from(digit);
        if ps > LAST_PS {
            return None;
        }
    }
    Some(ps)
}

fn parse_exponent(text: &str) -> Option<i64> {
    // Far beyond any exponent that matters, and far from overflowing in sums.
    const FAR: i64 = 1 << 40;
    let (sign, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = FAR.min(value * 10 + i64::from(digit - b'0'));
    }
    Some(sign * value)
}

/// The nearest nanosecond. Nothing is lost up to [`LAST_PS`], beyond which it saturates.
pub(crate) fn ps_to_ns(ps: u128) -> u64 {
    u64::try_from((ps + 500) / 1000).unwrap_or(u64::MAX)
}

/// A whole number of nanoseconds, digits only.
pub(crate) fn parse_nanos(text: &str) -> Option<u64> {
    // `u64::from_str` takes a plus sign.
    if text.starts_with('+') {
        None
    } else {
        text.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_json_writes() {
        let ns = |text| micros_to_ps(text).map(ps_to_ns);
        assert_eq!(ns("0"), Some(0));
        assert_eq!(ns("6.239"), Some(6_239));
        assert_eq!(ns("1763650000123456.789"), Some(1_763_650_000_123_456_789));
        assert_eq!(ns("1.5e3"), Some(1_500_000));
        assert_eq!(ns("1500E-3"), Some(1_500));
        assert_eq!(ns("2e+0"), Some(2_000));
        assert_eq!(ns("0.0004"), Some(0));
        assert_eq!(ns("0.0005"), Some(1));
        assert_eq!(ns("18446744073709551.615"), Some(u64::MAX));
        assert_eq!(ns("0e999999999999999999999"), Some(0));
        assert_eq!(ns("0.1e999999999999999999999"), None);
        assert_eq!(ns("9e-999999999999999999999"), Some(0));
        assert_eq!(ns("18446744073709551.616"), None);
        assert_eq!(ps_to_ns(u128::MAX - 500), u64::MAX);
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "", "-1", "-0", "+1", "NaN", "inf", "1.", ".5", "1e", "1e+", "1e1.5", "1 ", "0x10",
        ] {
            assert_eq!(micros_to_ps(text), None, "{text:?}");
        }
        for text in ["", "-1", "+1", "1.0", "1e3", " 1", "18446744073709551616"] {
            assert_eq!(parse_nanos(text), None, "{text:?}");
        }
        assert_eq!(parse_nanos("18446744073709551615"), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn is_exact_to_the_nanosecond(ns: u64) {
            let text = format!("{}.{:03}", ns / 1000, ns % 1000);
            prop_assert_eq!(micros_to_ps(&text).map(ps_to_ns), Some(ns));
        }

        #[test]
        fn never_panics(text in "[0-9.eE+-]{0,30}") {
            micros_to_ps(&text);
        }
    }
}
