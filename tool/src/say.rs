//! What the tool tells its user.

/// A line on standard error.
macro_rules! say {
    ($($text:tt)*) => {
        crate::signals::write_error(&format!("hsa-serializer: {}\n", format_args!($($text)*)))
    };
}
