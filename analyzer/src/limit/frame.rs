//! Limits of what is kept of functions' frames.

/// Frame descriptions kept of one file: 24 bytes each.
pub const MAX_FRAME_DESCRIPTIONS: usize = 1 << 22;

/// Rows of one frame description: each push of a function makes one.
pub const MAX_FRAME_ROWS: usize = 1 << 16;

/// Variables of a frame that are looked at for one place in it: those that share it, in scopes of which one is seen at a
/// time, are some hundred in the largest functions.
pub const MAX_FRAME_STEPS: usize = 1 << 12;

/// Variables of a frame that are seen at one instruction and kept with it, 56 bytes each: an interpreter's loop without
/// optimisation has some hundred.
pub const MAX_FRAME_SLOTS: usize = 1 << 10;
