//! Cache lines that several threads touch: who reads and writes which bytes of them, and whether they get into each
//! other's way.

mod meeting;
mod part;
pub mod survey;
mod touch;
