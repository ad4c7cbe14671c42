//! What the crate declares, as lists: the one thing that has to be kept up by hand, and
//! `nothing_that_is_declared_escapes_the_probe` sees to that.

use crate::probe::Values;
use hsa_sys::functions::{self, Place};
use hsa_sys::*;
use std::mem::{align_of, offset_of, size_of};

/// A structure, its fields by the header's names.
pub(crate) struct Structure {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// Name, offset, size.
    pub(crate) fields: Vec<(&'static str, usize, usize)>,
}

pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) parameters: Vec<&'static str>,
    pub(crate) returns: &'static str,
}

pub(crate) struct Declared {
    /// Integer types with their sizes.
    pub(crate) types: Vec<(&'static str, usize)>,
    /// Integer types that have another size in the headers, and in no function's signature.
    pub(crate) passed_as_integers: Vec<(&'static str, usize)>,
    pub(crate) constants: Vec<(&'static str, i128)>,
    pub(crate) structures: Vec<Structure>,
    pub(crate) functions: Vec<Function>,
}

/// Structures that are longer, or have a longer alignment, in some versions: only the part that is
/// declared here is compared.
const GROWS: &[&str] = &["HsaApiTable"];

/// In 6.x some of what was reserved here has names; everything else is where it was.
const RESERVED: &[&str] = &["reserved1", "reserved3", "reserved4"];

macro_rules! structures {
    ($($name:ident { $($field:ident $(as $header:literal)?),* $(,)? })*) => {
        vec![$({
            // Names every field: one that is missing here does not compile.
            #[allow(unused)]
            fn every_field($name { $($field: _),* }: $name) {}
            Structure {
                name: stringify!($name),
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                fields: vec![$({
                    fn size_of_field<T>(_: impl FnOnce($name) -> T) -> usize {
                        size_of::<T>()
                    }
                    let header: &[&str] = &[$($header)?];
                    (
                        header.first().copied().unwrap_or(stringify!($field)),
                        offset_of!($name, $field),
                        size_of_field(|s: $name| s.$field),
                    )
                }),*],
            }
        }),*]
    };
}

/// Newtypes with their lists of constants.
macro_rules! types {
    ($types:ident, $constants:ident: $($name:ident)*) => {$(
        $types.push((stringify!($name), size_of::<$name>()));
        $constants.extend($name::ALL.iter().map(|(name, value)| (*name, value.0 as i128)));
    )*};
}

/// Plain constants, and variants of enumerations under the header's names.
macro_rules! plain {
    ($constants:ident: $($name:ident)*; $($header:literal = $value:expr),* $(,)?) => {
        $($constants.push((stringify!($name), $name as i128));)*
        $($constants.push(($header, $value as i128));)*
    };
}

impl Declared {
    pub(crate) fn all() -> Self {
        let mut types = Vec::new();
        let mut constants = Vec::new();
        types! { types, constants:
            hsa_status_t hsa_system_info_t hsa_agent_info_t hsa_agent_feature_t hsa_device_type_t
            hsa_executable_symbol_info_t hsa_symbol_kind_t
            hsa_amd_memory_pool_info_t hsa_amd_segment_t hsa_amd_memory_pool_global_flag_t
            hsa_amd_agent_memory_pool_info_t hsa_amd_memory_pool_access_t hsa_queue_type32_t
            hsa_queue_feature_t hsa_amd_queue_priority_t amd_queue_properties32_t
            hsa_signal_condition_t hsa_wait_state_t amd_signal_kind64_t
        }
        // The functions take these as the integers that they are here, not as the enumerations.
        let mut passed_as_integers = Vec::new();
        types! { passed_as_integers, constants: hsa_extension_t hsa_amd_signal_attribute_t }
        types.push(("hsa_signal_value_t", size_of::<hsa_signal_value_t>()));
        plain! { constants:
            HSA_PACKET_HEADER_TYPE HSA_PACKET_HEADER_BARRIER HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE
            HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE HSA_PACKET_HEADER_WIDTH_TYPE;
            "HSA_PACKET_TYPE_VENDOR_SPECIFIC" = PacketType::VendorSpecific,
            "HSA_PACKET_TYPE_INVALID" = PacketType::Invalid,
            "HSA_PACKET_TYPE_KERNEL_DISPATCH" = PacketType::KernelDispatch,
            "HSA_PACKET_TYPE_BARRIER_AND" = PacketType::BarrierAnd,
            "HSA_PACKET_TYPE_AGENT_DISPATCH" = PacketType::AgentDispatch,
            "HSA_PACKET_TYPE_BARRIER_OR" = PacketType::BarrierOr,
            "HSA_FENCE_SCOPE_NONE" = FenceScope::None,
            "HSA_FENCE_SCOPE_AGENT" = FenceScope::Agent,
            "HSA_FENCE_SCOPE_SYSTEM" = FenceScope::System,
            "HSA_SIGNAL_CONDITION_EQ" = SignalCondition::Eq,
            "HSA_SIGNAL_CONDITION_NE" = SignalCondition::Ne,
            "HSA_SIGNAL_CONDITION_LT" = SignalCondition::Lt,
            "HSA_SIGNAL_CONDITION_GTE" = SignalCondition::Gte,
        }
        let structures = structures! {
            hsa_signal_t { handle }
            hsa_agent_t { handle }
            hsa_amd_memory_pool_t { handle }
            hsa_executable_t { handle }
            hsa_executable_symbol_t { handle }
            hsa_queue_t { type_ as "type", features, base_address, doorbell_signal, size, reserved1, id }
            amd_queue_t {
                hsa_queue, reserved1, write_dispatch_id, group_segment_aperture_base_hi,
                private_segment_aperture_base_hi, max_cu_id, max_wave_id,
                max_legacy_doorbell_dispatch_id_plus_1, legacy_doorbell_lock, reserved2,
                read_dispatch_id, read_dispatch_id_field_base_byte_offset, compute_tmpring_size,
                scratch_resource_descriptor, scratch_backing_memory_location,
                scratch_backing_memory_byte_size, scratch_wave64_lane_byte_size, queue_properties,
                reserved3, queue_inactive_signal, reserved4,
            }
            amd_signal_t {
                kind, value, event_mailbox_ptr, event_id, reserved1, start_ts, end_ts, queue_ptr,
                reserved3,
            }
            hsa_amd_profiling_dispatch_time_t { start, end }
            hsa_amd_profiling_async_copy_time_t { start, end }
            hsa_kernel_dispatch_packet_t {
                header, setup, workgroup_size_x, workgroup_size_y, workgroup_size_z, reserved0,
                grid_size_x, grid_size_y, grid_size_z, private_segment_size, group_segment_size,
                kernel_object, kernarg_address, reserved2, completion_signal,
            }
            hsa_barrier_and_packet_t {
                header, reserved0, reserved1, dep_signal, reserved2, completion_signal,
            }
            hsa_barrier_or_packet_t {
                header, reserved0, reserved1, dep_signal, reserved2, completion_signal,
            }
            ApiTableVersion { major_id, minor_id, step_id, reserved }
            HsaApiTable { version, core_, amd_ext_, finalizer_ext_, image_ext_ }
        };
        let functions = functions::ALL
            .iter()
            .map(|f| Function {
                name: f.name,
                parameters: f.parameters.to_vec(),
                returns: f.returns,
            })
            .collect();
        Self {
            types,
            passed_as_integers,
            constants,
            structures,
            functions,
        }
    }

    /// Declares a function's parameters otherwise.
    pub(crate) fn override_parameters(&mut self, name: &str, parameters: &[&'static str]) {
        let function = self.functions.iter_mut().find(|f| f.name == name);
        function.expect("a function of the list").parameters = parameters.to_vec();
    }

    /// Whether the lists have that name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.types.iter().any(|(n, _)| *n == name)
            || self.passed_as_integers.iter().any(|(n, _)| *n == name)
            || self.constants.iter().any(|(n, _)| *n == name)
            || self.structures.iter().any(|s| s.name == name)
            || self.functions.iter().any(|f| f.name == name)
    }

    /// The functions with their tables.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        functions::ALL.iter().map(|f| {
            let table = match f.place {
                Place::Core(_) => "CoreApiTable",
                Place::AmdExt(_) => "AmdExtTable",
            };
            (table, f.name)
        })
    }

    /// The fields of a structure that are compared.
    pub(crate) fn fields(
        structure: &Structure,
    ) -> impl Iterator<Item = &(&'static str, usize, usize)> {
        let named = structure.name == "amd_queue_t";
        structure
            .fields
            .iter()
            .filter(move |(name, _, _)| !named || !RESERVED.contains(name))
    }

    /// Whether a structure's size is compared.
    pub(crate) fn is_complete(structure: &Structure) -> bool {
        !GROWS.contains(&structure.name)
    }

    /// Constants, sizes and offsets as they are here.
    pub(crate) fn values(&self) -> Values {
        let mut values = Values::new();
        for (name, value) in &self.constants {
            values.insert(format!("constant {name}"), *value);
        }
        for (name, size) in &self.types {
            values.insert(format!("size {name}"), *size as i128);
        }
        for structure in &self.structures {
            let name = structure.name;
            if Self::is_complete(structure) {
                values.insert(format!("size {name}"), structure.size as i128);
            }
            values.insert(format!("align {name}"), structure.align as i128);
            for (field, offset, size) in Self::fields(structure) {
                values.insert(format!("offset {name}.{field}"), *offset as i128);
                values.insert(format!("field {name}.{field}"), *size as i128);
            }
        }
        values
    }
}
