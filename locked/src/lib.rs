//! locked
