//! Status codes (`hsa_status_t` in `hsa.h` and `hsa_ext_amd.h`; Runtime specification 2.2).

use std::fmt;

/// What a runtime call answered. Values that this crate does not know are kept as they are.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub struct hsa_status_t(pub u32);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        impl hsa_status_t {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Every status that this crate names, with the header's name.
            pub const ALL: &[(&str, Self)] =
                &[$((concat!("HSA_STATUS_", stringify!($name)), Self::$name),)*];

            /// The constant's name in the header, or `None` for a value that it does not name.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(concat!("HSA_STATUS_", stringify!($name))),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    /// The call succeeded.
    SUCCESS = 0x0;
    /// A traversal was ended early by its callback; no error.
    INFO_BREAK = 0x1;
    /// A generic error.
    ERROR = 0x1000;
    /// An argument is wrong.
    ERROR_INVALID_ARGUMENT = 0x1001;
    /// A queue of that size or kind can't be made.
    ERROR_INVALID_QUEUE_CREATION = 0x1002;
    /// An allocation's size or place is wrong.
    ERROR_INVALID_ALLOCATION = 0x1003;
    /// The agent is not one.
    ERROR_INVALID_AGENT = 0x1004;
    /// The memory region is not one.
    ERROR_INVALID_REGION = 0x1005;
    /// The signal is not one, or can't do what was asked.
    ERROR_INVALID_SIGNAL = 0x1006;
    /// The queue is not one.
    ERROR_INVALID_QUEUE = 0x1007;
    /// The runtime has no more memory, events or the like.
    ERROR_OUT_OF_RESOURCES = 0x1008;
    /// A packet's format is wrong.
    ERROR_INVALID_PACKET_FORMAT = 0x1009;
    /// A resource could not be freed.
    ERROR_RESOURCE_FREE = 0x100A;
    /// `hsa_init` was not called, or `hsa_shut_down` was.
    ERROR_NOT_INITIALIZED = 0x100B;
    /// A reference count ran over.
    ERROR_REFCOUNT_OVERFLOW = 0x100C;
    /// Arguments do not fit each other.
    ERROR_INCOMPATIBLE_ARGUMENTS = 0x100D;
    /// An index is wrong.
    ERROR_INVALID_INDEX = 0x100E;
    /// The instruction set is not one.
    ERROR_INVALID_ISA = 0x100F;
    /// The code object is not one.
    ERROR_INVALID_CODE_OBJECT = 0x1010;
    /// The executable is not one.
    ERROR_INVALID_EXECUTABLE = 0x1011;
    /// The executable is frozen.
    ERROR_FROZEN_EXECUTABLE = 0x1012;
    /// There is no symbol of that name.
    ERROR_INVALID_SYMBOL_NAME = 0x1013;
    /// A variable is defined already.
    ERROR_VARIABLE_ALREADY_DEFINED = 0x1014;
    /// A variable is not defined.
    ERROR_VARIABLE_UNDEFINED = 0x1015;
    /// A kernel raised an exception.
    ERROR_EXCEPTION = 0x1016;
    /// The name of an instruction set is wrong.
    ERROR_INVALID_ISA_NAME = 0x1017;
    /// The symbol of a code object is wrong.
    ERROR_INVALID_CODE_SYMBOL = 0x1018;
    /// The symbol of an executable is wrong.
    ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019;
    /// A file could not be opened or read.
    ERROR_INVALID_FILE = 0x1020;
    /// The reader of a code object is not one.
    ERROR_INVALID_CODE_OBJECT_READER = 0x1021;
    /// The cache is not one.
    ERROR_INVALID_CACHE = 0x1022;
    /// The wavefront is not one.
    ERROR_INVALID_WAVEFRONT = 0x1023;
    /// The signal group is not one.
    ERROR_INVALID_SIGNAL_GROUP = 0x1024;
    /// The runtime is in a state that does not allow the call.
    ERROR_INVALID_RUNTIME_STATE = 0x1025;
    /// The queue is in an error state (AMD: a fault stopped it).
    ERROR_FATAL = 0x1026;
    /// AMD: the memory pool is not one.
    ERROR_INVALID_MEMORY_POOL = 40;
    /// AMD: a kernel accessed memory beyond the highest address.
    ERROR_MEMORY_APERTURE_VIOLATION = 41;
    /// AMD: a kernel has an instruction that is not one.
    ERROR_ILLEGAL_INSTRUCTION = 42;
    /// AMD: a kernel accessed memory that it may not access.
    ERROR_MEMORY_FAULT = 43;
    /// AMD: the mask was set, without compute units that the process may not have.
    CU_MASK_REDUCED = 44;
    /// AMD, since 6.0: a kernel needs more registers than there are.
    ERROR_OUT_OF_REGISTERS = 45;
    /// AMD, since 6.2: what was asked for is in use.
    ERROR_RESOURCE_BUSY = 46;
}

impl hsa_status_t {
    /// `Ok` for [`SUCCESS`](Self::SUCCESS), else the status as an error.
    ///
    /// # Errors
    /// Every status that is not success.
    pub const fn ok(self) -> Result<(), Self> {
        if self.0 == 0 { Ok(()) } else { Err(self) }
    }
}

impl fmt::Debug for hsa_status_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for hsa_status_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "hsa_status_t({:#x})", self.0),
        }
    }
}

impl std::error::Error for hsa_status_t {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_printed_by_its_name_or_its_number() {
        assert_eq!(
            hsa_status_t::ERROR_OUT_OF_RESOURCES.to_string(),
            "HSA_STATUS_ERROR_OUT_OF_RESOURCES"
        );
        assert_eq!(hsa_status_t(0x2fff).to_string(), "hsa_status_t(0x2fff)");
        assert_eq!(hsa_status_t::SUCCESS.ok(), Ok(()));
        assert_eq!(hsa_status_t::ERROR.ok(), Err(hsa_status_t::ERROR));
    }
}
