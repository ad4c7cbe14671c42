//! Domains of reclamation.

pub use crate::handle::hsa_serializer_domain_t;
use crate::objects::Objects;
use crate::serializer::output;
use crate::status::{Outcome, hsa_serializer_status_t, status};
use hsa_serializer::Domain;

static DOMAINS: Objects<Domain> = Objects::new();

pub(crate) fn find(domain: hsa_serializer_domain_t) -> Outcome<Domain> {
    Ok((*DOMAINS.find(domain.number()?)?).clone())
}

/// Makes a domain: what is retired in it waits for nobody but its own users. The process has one by default,
/// which does for everybody who has no reason for another.
///
/// From any thread, but not in callbacks.
///
/// `HSA_SERIALIZER_NULL_POINTER`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_domain_create(
    domain: *mut hsa_serializer_domain_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(domain) }?;
        out.write(hsa_serializer_domain_t::new(DOMAINS.keep(Domain::new())));
        Ok(())
    })
}

/// Gives the handle up. Serializers that were made with it keep the domain.
///
/// From any thread, once, but not in callbacks.
///
/// `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_domain_destroy(
    domain: hsa_serializer_domain_t,
) -> hsa_serializer_status_t {
    status(|| DOMAINS.take(domain.number()?).map(drop))
}

/// How many deferred functions of the domain have not run yet. With a null handle: of the process's domain.
///
/// From any thread, but not in callbacks.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_domain_pending(
    domain: hsa_serializer_domain_t,
    pending: *mut u64,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(pending) }?;
        out.write(find_or_process(domain)?.pending() as u64);
        Ok(())
    })
}

fn find_or_process(domain: hsa_serializer_domain_t) -> Outcome<Domain> {
    if domain.handle == 0 {
        return Ok(Domain::process());
    }
    find(domain)
}
