//! Opaque handles and what a wait compares (`hsa.h`; Runtime specification 2.4, 2.5).

/// What a signal holds. HSA has a 64-bit value on every large-model machine.
pub type hsa_signal_value_t = i64;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            /// Opaque to everybody but the runtime. 0 is never a valid handle.
            pub handle: u64,
        }

        impl $name {
            /// The null handle, which refers to nothing.
            pub const NULL: Self = Self { handle: 0 };

            /// Whether this is the null handle.
            #[inline]
            #[must_use]
            pub const fn is_null(self) -> bool {
                self.handle == 0
            }
        }
    )*};
}

handles! {
    /// A signal: a 64-bit value that host and packet processors read, write and wait for.
    ///
    /// The runtime gives a destroyed signal's handle out again, last in, first out.
    hsa_signal_t;
    /// An agent: here, a GPU.
    hsa_agent_t;
    /// A pool that memory is allocated from.
    hsa_amd_memory_pool_t;
    /// Code that was loaded.
    hsa_executable_t;
    /// A kernel or a variable of loaded code.
    hsa_executable_symbol_t;
}

/// How a wait or an asynchronous handler compares a signal's value (`hsa_signal_condition_t`).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalCondition {
    /// Equal to the given value.
    Eq = 0,
    /// Not equal to it.
    Ne = 1,
    /// Less than it.
    Lt = 2,
    /// Greater than or equal to it.
    Gte = 3,
}

impl SignalCondition {
    /// Whether `value` meets this condition against `compare`.
    ///
    /// ```
    /// assert!(hsa_sys::SignalCondition::Lt.holds(-1, 1));
    /// ```
    #[inline]
    #[must_use]
    pub const fn holds(self, value: hsa_signal_value_t, compare: hsa_signal_value_t) -> bool {
        match self {
            Self::Eq => value == compare,
            Self::Ne => value != compare,
            Self::Lt => value < compare,
            Self::Gte => value >= compare,
        }
    }
}
