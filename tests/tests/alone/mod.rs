//! Tests that look at times or at the whole machine: nothing else runs beside them.

mod at_work;
mod attacks;
mod fairness;
mod first_byte;
mod scaling;
mod slow_clients;
mod starvation;
