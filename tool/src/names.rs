//! Kernels' names, by the addresses that dispatches have.

use crate::hsa::Hsa;
use crate::lock;
use cpp_demangle::Symbol;
use hsa_sys::{
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, HSA_EXECUTABLE_SYMBOL_INFO_NAME,
    HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, HSA_EXECUTABLE_SYMBOL_INFO_TYPE,
    HSA_SYMBOL_KIND_KERNEL, hsa_agent_t, hsa_executable_symbol_info_t, hsa_executable_symbol_t,
    hsa_executable_t, hsa_status_t, hsa_symbol_kind_t,
};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A kernel, as the trace has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) id: u64,
    pub(crate) name: String,
}

/// The kernels that were loaded, or met. An address may come again, of other code: then the name that was
/// told last counts, and kernels that were dispatched before keep theirs.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<HashMap<u64, Arc<Kernel>>>);

/// Kernels are numbered from 1 in the whole process.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Names {
    /// The kernel at an address; where the runtime has told no name, the address stands for it.
    pub(crate) fn get(&self, address: u64) -> Arc<Kernel> {
        let mut kernels = lock(&self.0);
        let unknown = || new(format!("kernel {address:#x}"));
        kernels.entry(address).or_insert_with(unknown).clone()
    }

    fn put(&self, address: u64, symbol: &str) {
        lock(&self.0).insert(address, new(readable(symbol)));
    }

    /// Takes the names of an executable's kernels for an agent: it was frozen, so it has addresses.
    ///
    /// # Errors
    /// What the runtime answered. Those names are unknown then.
    ///
    /// # Safety
    /// Nobody destroys the executable meanwhile.
    pub(crate) unsafe fn take(
        &self,
        hsa: &Hsa,
        executable: hsa_executable_t,
        agent: hsa_agent_t,
    ) -> Result<(), hsa_status_t> {
        unsafe extern "C" fn one(
            _: hsa_executable_t,
            _: hsa_agent_t,
            symbol: hsa_executable_symbol_t,
            data: *mut c_void,
        ) -> hsa_status_t {
            // SAFETY: what was given to the iteration below, which is still under way.
            let (names, hsa) = unsafe { *data.cast::<(&Names, &Hsa)>() };
            // SAFETY: the runtime has just named it.
            if let Ok(Some((address, name))) = unsafe { kernel(hsa, symbol) } {
                names.put(address, &name);
            }
            hsa_status_t::SUCCESS
        }
        let mut data = (self, hsa);
        let iterate = hsa.api().hsa_executable_iterate_agent_symbols;
        // SAFETY: `one` is called during this call alone, with that pair.
        unsafe { iterate(executable, agent, one, (&raw mut data).cast()) }.ok()
    }
}

fn new(name: String) -> Arc<Kernel> {
    let id = NEXT.fetch_add(1, Relaxed);
    Arc::new(Kernel { id, name })
}

/// A symbol's address and name, if it is a kernel.
///
/// # Safety
/// It is a symbol of an executable that lives.
unsafe fn kernel(
    hsa: &Hsa,
    symbol: hsa_executable_symbol_t,
) -> Result<Option<(u64, String)>, hsa_status_t> {
    let ask = |attribute: hsa_executable_symbol_info_t, place: *mut c_void| {
        // SAFETY: the caller's promise; each place below is as large as its attribute.
        unsafe { (hsa.api().hsa_executable_symbol_get_info)(symbol, attribute, place) }.ok()
    };
    let mut kind = hsa_symbol_kind_t::default();
    ask(HSA_EXECUTABLE_SYMBOL_INFO_TYPE, (&raw mut kind).cast())?;
    if kind != HSA_SYMBOL_KIND_KERNEL {
        return Ok(None);
    }
    let (mut address, mut length) = (0_u64, 0_u32);
    ask(
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
        (&raw mut address).cast(),
    )?;
    ask(
        HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH,
        (&raw mut length).cast(),
    )?;
    let mut name = vec![0_u8; length as usize];
    ask(HSA_EXECUTABLE_SYMBOL_INFO_NAME, name.as_mut_ptr().cast())?;
    Ok(Some((address, String::from_utf8_lossy(&name).into_owned())))
}

/// As its author wrote it: what is loaded under `_Z3fooi.kd` is `foo(int)`.
fn readable(symbol: &str) -> String {
    let name = symbol.trim_end_matches('\0');
    let name = name.strip_suffix(".kd").unwrap_or(name);
    let demangled = Symbol::new(name)
        .ok()
        .and_then(|s| s.demangle(&Default::default()).ok());
    demangled.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_readable_and_an_unknown_kernel_has_its_address() {
        assert_eq!(
            readable("_Z13divide_kernelPfPKfS1_ii.kd"),
            "divide_kernel(float*, float const*, float const*, int, int)"
        );
        assert_eq!(
            readable("__amd_rocclr_fillBufferAligned.kd\0"),
            "__amd_rocclr_fillBufferAligned"
        );
        let names = Names::default();
        assert_eq!(names.get(0xab).name, "kernel 0xab");
        assert_eq!(names.get(0xab), names.get(0xab));
    }

    #[test]
    fn an_address_that_comes_again_has_the_later_name_and_another_number() {
        let names = Names::default();
        names.put(1, "first");
        let first = names.get(1);
        names.put(1, "second");
        assert_eq!(
            (first.name.as_str(), names.get(1).name.as_str()),
            ("first", "second")
        );
        assert_ne!(first.id, names.get(1).id);
    }
}
