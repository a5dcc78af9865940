//! The value of a number or pointer as a programmer writes it.

use crate::types::data_object::DataObject;
use crate::types::layout::{ScalarKind, Shape};

/// The way in which the values of a type are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScalarForm {
    Signed,
    Unsigned,
    Truth,
    Float,
    /// As hexadecimal digits: addresses, and what is known no better.
    Digits,
}

/// The way in which the values of one data object are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScalarNotation {
    notation: ScalarForm,
    n_bytes: u64,
}

impl ScalarNotation {
    /// Of an object of which nothing else is known.
    pub(crate) const DIGITS: Self = Self { notation: ScalarForm::Digits, n_bytes: 0 };

    /// The notation of an object's values: digits where it is no number, or a bit-field, of which an access touches more.
    pub(crate) fn of(object: &DataObject) -> Self {
        let found = object.leaf().filter(|leaf| !leaf.step.is_bit_field()).and_then(|leaf| {
            let layout = leaf.step.layout()?.innermost();
            let Shape::Scalar(kind) = layout.shape else { return None };
            let notation = match kind {
                ScalarKind::Pointer | ScalarKind::Opaque => ScalarForm::Digits,
                ScalarKind::Float => ScalarForm::Float,
                _ if layout.expression.is_truth() => ScalarForm::Truth,
                _ if layout.expression.is_unsigned() => ScalarForm::Unsigned,
                ScalarKind::Byte | ScalarKind::Number => ScalarForm::Signed,
            };
            Some(Self { notation, n_bytes: layout.size })
        });
        found.unwrap_or(Self::DIGITS)
    }

    /// The text of a value of `n_bytes`, the lowest of `value`.
    pub(crate) fn text(self, value: u64, n_bytes: u64) -> String {
        let notation = if n_bytes == self.n_bytes { self.notation } else { ScalarForm::Digits };
        match (notation, n_bytes) {
            (ScalarForm::Signed, 1) => (value as u8).cast_signed().to_string(),
            (ScalarForm::Signed, 2) => (value as u16).cast_signed().to_string(),
            (ScalarForm::Signed, 4) => (value as u32).cast_signed().to_string(),
            (ScalarForm::Signed, 8) => value.cast_signed().to_string(),
            (ScalarForm::Unsigned, _) => value.to_string(),
            (ScalarForm::Truth, _) if value <= 1 => (value == 1).to_string(),
            (ScalarForm::Float, 4) => f32::from_bits(value as u32).to_string(),
            (ScalarForm::Float, 8) => f64::from_bits(value).to_string(),
            _ => format!("{value:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_their_type_says_if_they_are_as_wide() {
        let check = |notation, n_bytes, value, expected: &str| {
            let own = ScalarNotation { notation, n_bytes };
            assert_eq!(own.text(value, n_bytes), expected, "{own:?}");
            assert_eq!(own.text(0x1f, 2 * n_bytes), "0x1f", "another width");
        };
        check(ScalarForm::Signed, 1, 0xff, "-1");
        check(ScalarForm::Signed, 2, 0x8000, "-32768");
        check(ScalarForm::Signed, 4, 0xffff_fff9, "-7");
        check(ScalarForm::Signed, 8, u64::MAX, "-1");
        check(ScalarForm::Unsigned, 1, 0xff, "255");
        check(ScalarForm::Unsigned, 8, u64::MAX, "18446744073709551615");
        check(ScalarForm::Truth, 1, 1, "true");
        check(ScalarForm::Truth, 1, 0, "false");
        check(ScalarForm::Truth, 1, 7, "0x7");
        check(ScalarForm::Float, 4, u64::from(1.5f32.to_bits()), "1.5");
        check(ScalarForm::Float, 8, (-0.25f64).to_bits(), "-0.25");
        check(ScalarForm::Digits, 8, 0x7fff_0000_1000, "0x7fff00001000");
    }
}
