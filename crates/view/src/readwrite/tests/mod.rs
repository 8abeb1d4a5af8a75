//! The view through the kernel: what programs see, and what a commit makes of the layer.

mod crash;
mod deep;
mod files;
mod holes;
mod links;
mod many;
mod model;
mod nameless;
mod names;
mod points;
mod space;
mod support;
mod whole;
