//! Where the caller of a function finds its own state again.

/// What a frame is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The stack pointer.
    Stack,
    /// The frame pointer.
    Frame,
    /// What was saved at that many bytes from the stack pointer.
    SavedAtStack(i64),
    /// What was saved at that many bytes from the frame pointer.
    SavedAtFrame(i64),
}

/// What becomes of the frame pointer in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallersFrame {
    /// It is still the caller's.
    Kept,
    /// It was saved at that many bytes from the frame's address.
    Saved(i64),
    /// It cannot be found.
    Lost,
}

/// How the caller's state is restored at one place of the code (DWARF 5, 6.4). The frame's address ("canonical frame
/// address") is the stack pointer that the caller had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRule {
    /// With `offset`: the frame's address.
    pub base: Base,
    /// Bytes from what `base` holds to the frame's address.
    pub offset: i64,
    /// Bytes from the frame's address to the return address; None if that is still in the link register.
    pub return_address: Option<i64>,
    /// The caller's frame pointer.
    pub frame_pointer: CallersFrame,
}
