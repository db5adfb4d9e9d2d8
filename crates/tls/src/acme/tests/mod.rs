//! Against pebble, Let's Encrypt's test CA; and without a CA.

mod dns;
mod failures;
mod issuance;
mod on_demand;
mod pebble;
mod several;
mod storage;
mod world;
