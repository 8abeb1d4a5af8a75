//! Maintenance of a home, driven as a user would: what is deleted comes back, what is unreachable is removed, what is
//! damaged is named.

mod apart;
mod collect;
mod damage;
mod hostile;
mod journal;
mod keep_going;
mod lifetime;
mod limits;
mod read_only;
mod rebuild;
mod repair;
mod spoil;
