//! Layouts of types as rows, each with what was measured of it; drawn as text here, and by the screen.

pub(crate) mod document;
pub(crate) mod figure;
pub(crate) mod measure;
pub(crate) mod render;
pub(crate) mod row;
mod spelling;
