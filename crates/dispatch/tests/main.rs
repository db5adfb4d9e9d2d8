//! The policies, simulated: scaling, lanes and the order of starts. One program, so that it is linked once.
#![forbid(unsafe_code)]

mod lane_order;
mod scaling;
mod scaling_properties;
mod scaling_rules;
mod scaling_scenarios;
mod simulator;
mod start_order;
