//! Tests that look at times or at the whole machine: nothing else runs beside them.

mod at_work;
mod attacks;
mod cache_conformance;
mod fairness;
mod first_byte;
mod frozen;
mod opcache;
mod scaling;
mod slow_clients;
mod starvation;
