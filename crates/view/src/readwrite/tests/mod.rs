//! The view through the kernel: what programs see, and what a commit makes of the layer.

mod names;
mod support;
