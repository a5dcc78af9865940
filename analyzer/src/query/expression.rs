//! Expressions over the fields of a sample, and their values.
//!
//! Operators mean what they mean in the Common Formula Language
//! (<https://github.com/google/cel-spec/blob/master/doc/langdef.md>), where a field without a value is an error: `&&`
//! and `||` have a value in spite of one where the other side decides, everything else has none.

use crate::limit;
use crate::query::field::{At, Column, Field, Notation, Value};
use std::borrow::Cow;

/// A relation of two values of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A question about two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

/// An expression, whose kinds fit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Formula {
    Constant(Value<'static>),
    Field(Field),
    And(Box<(Formula, Formula)>),
    Or(Box<(Formula, Formula)>),
    Not(Box<Formula>),
    Negate(Box<Formula>),
    Number(Operator, Box<(Formula, Formula)>),
    /// Two texts one after the other.
    Join(Box<(Formula, Formula)>),
    /// A relation of texts or truths.
    Compare(Comparison, Box<(Formula, Formula)>),
    CompareNumbers(Comparison, Box<(Formula, Formula)>),
    /// Equality with `null`.
    IsNone(Box<Formula>),
    Test(TextTest, Box<(Formula, Formula)>),
    /// Number of characters.
    Length(Box<Formula>),
    In(Box<Formula>, Vec<Formula>),
    Conditional(Box<(Formula, Formula, Formula)>),
    /// A part that depends on one table alone, and the number of its answers, which are kept.
    Kept(Column, usize, Box<Formula>),
}

/// The answers of parts of an expression, by the number of a table's entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(Vec<Vec<Option<Answered>>>);

/// A value that no table holds: of a text there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answered {
    None,
    Bool(bool),
    Number(i64),
}

impl Answers {
    /// The answer of a part for a table's entry, as far as it is known.
    #[inline]
    pub(crate) fn known(&self, slot: usize, number: u32) -> Option<Answered> {
        self.0.get(slot)?.get(number as usize).copied().flatten()
    }
}

impl Formula {
    /// Its value for one sample.
    pub(crate) fn value<'a>(&'a self, at: At<'a>, answers: &mut Answers) -> Value<'a> {
        match self {
            Self::Constant(value) => value.clone(),
            Self::Field(field) => at.value(*field),
            Self::Negate(_) | Self::Number(..) | Self::Length(_) => {
                self.number(at, answers).map_or(Value::None, Value::Number)
            }
            Self::Join(both) => match (both.0.value(at, answers), both.1.value(at, answers)) {
                (Value::Text(left), Value::Text(right))
                    if left.len() + right.len() <= limit::MAX_TEXT_BYTES =>
                {
                    Value::Text(Cow::Owned(left.into_owned() + &right))
                }
                _ => Value::None,
            },
            Self::Conditional(parts) => match parts.0.truth(at, answers) {
                Some(true) => parts.1.value(at, answers),
                Some(false) => parts.2.value(at, answers),
                None => Value::None,
            },
            Self::Kept(table, slot, inner) => kept((*table, *slot), inner, at, answers),
            Self::And(_)
            | Self::Or(_)
            | Self::Not(_)
            | Self::Compare(..)
            | Self::CompareNumbers(..)
            | Self::IsNone(_)
            | Self::Test(..)
            | Self::In(..) => self.truth(at, answers).map_or(Value::None, Value::Bool),
        }
    }

    /// Its value, where that is a number.
    pub(crate) fn number(&self, at: At<'_>, answers: &mut Answers) -> Option<i64> {
        match self {
            Self::Field(field) => at.number_of(*field),
            Self::Constant(Value::Number(number)) => Some(*number),
            Self::Negate(inner) => inner.number(at, answers)?.checked_neg(),
            Self::Number(operator, both) => {
                let left = both.0.number(at, answers)?;
                computed(*operator, left, both.1.number(at, answers)?)
            }
            Self::Length(inner) => match inner.value(at, answers) {
                Value::Text(text) => Some(text.chars().count() as i64),
                _ => None,
            },
            _ => match self.value(at, answers) {
                Value::Number(number) => Some(number),
                _ => None,
            },
        }
    }

    /// Its value, where that is true or false.
    pub(crate) fn truth(&self, at: At<'_>, answers: &mut Answers) -> Option<bool> {
        match self {
            Self::And(both) => decided_by(false, both, at, answers),
            Self::Or(both) => decided_by(true, both, at, answers),
            Self::Not(inner) => inner.truth(at, answers).map(|is_so| !is_so),
            Self::CompareNumbers(relation, both) => {
                let left = both.0.number(at, answers)?;
                Some(relation.holds(&left, &both.1.number(at, answers)?))
            }
            Self::Compare(relation, both) => {
                match (both.0.value(at, answers), both.1.value(at, answers)) {
                    (Value::Text(left), Value::Text(right)) => Some(relation.holds(&left, &right)),
                    (Value::Bool(left), Value::Bool(right)) => Some(relation.holds(&left, &right)),
                    _ => None,
                }
            }
            Self::IsNone(inner) => Some(inner.value(at, answers) == Value::None),
            Self::Test(test, both) => {
                match (both.0.value(at, answers), both.1.value(at, answers)) {
                    (Value::Text(text), Value::Text(part)) => Some(match test {
                        TextTest::StartsWith => text.starts_with(&*part),
                        TextTest::EndsWith => text.ends_with(&*part),
                        TextTest::Contains => text.contains(&*part),
                    }),
                    _ => None,
                }
            }
            Self::In(inner, list) => match inner.value(at, answers) {
                Value::None => None,
                value => Some(list.iter().any(|it| it.value(at, answers) == value)),
            },
            _ => match self.value(at, answers) {
                Value::Bool(is_so) => Some(is_so),
                _ => None,
            },
        }
    }

    /// The parts that it is made of.
    pub(crate) fn parts(&self) -> Vec<&Formula> {
        match self {
            Self::Constant(_) | Self::Field(_) => Vec::new(),
            Self::And(both)
            | Self::Or(both)
            | Self::Join(both)
            | Self::Number(_, both)
            | Self::Compare(_, both)
            | Self::CompareNumbers(_, both)
            | Self::Test(_, both) => vec![&both.0, &both.1],
            Self::Not(inner)
            | Self::Negate(inner)
            | Self::IsNone(inner)
            | Self::Length(inner)
            | Self::Kept(_, _, inner) => vec![inner],
            Self::In(inner, list) => std::iter::once(&**inner).chain(list).collect(),
            Self::Conditional(parts) => vec![&parts.0, &parts.1, &parts.2],
        }
    }

    /// The field that it is, where it is nothing more.
    pub(crate) const fn field(&self) -> Option<Field> {
        match self {
            Self::Field(field) => Some(*field),
            _ => None,
        }
    }

    /// The form in which its values are shown.
    pub(crate) fn form(&self) -> Notation {
        self.field().map_or(Notation::Plain, Field::form)
    }

    /// Tells whether it speaks of a field.
    pub(crate) fn has(&self, field: Field) -> bool {
        *self == Self::Field(field) || self.parts().iter().any(|part| part.has(field))
    }

    /// Deepest nesting of its parts.
    pub(crate) fn depth(&self) -> usize {
        1 + self.parts().iter().map(|part| part.depth()).max().unwrap_or(0)
    }

    /// Number of the parts that it is made of over all levels, and itself.
    pub(crate) fn n_parts(&self) -> usize {
        1 + self.parts().iter().map(|part| part.n_parts()).sum::<usize>()
    }
}

/// `&&`, which false decides, and `||`, which true decides.
fn decided_by(
    decisive: bool,
    both: &(Formula, Formula),
    at: At<'_>,
    answers: &mut Answers,
) -> Option<bool> {
    let left = both.0.truth(at, answers);
    if left == Some(decisive) {
        return left;
    }
    match (left, both.1.truth(at, answers)) {
        (_, Some(right)) if right == decisive => Some(decisive),
        (Some(_), Some(_)) => Some(!decisive),
        _ => None,
    }
}

fn kept<'a>(
    (table, slot): (Column, usize),
    inner: &'a Formula,
    at: At<'a>,
    answers: &mut Answers,
) -> Value<'a> {
    let number = at.number(table);
    if let Some(known) = answers.known(slot, number) {
        return match known {
            Answered::None => Value::None,
            Answered::Bool(is_so) => Value::Bool(is_so),
            Answered::Number(number) => Value::Number(number),
        };
    }
    let value = inner.value(at, answers);
    let answered = match value {
        Value::None => Answered::None,
        Value::Bool(is_so) => Answered::Bool(is_so),
        Value::Number(number) => Answered::Number(number),
        Value::Text(_) => return value,
    };
    // The number of what has no entry is the largest, and a CPU's is the recording's word: those are asked anew.
    let number = number as usize;
    if number < limit::MAX_KEPT_ANSWERS {
        if answers.0.len() <= slot {
            answers.0.resize(slot + 1, Vec::new());
        }
        let of_number = &mut answers.0[slot];
        if of_number.len() <= number {
            of_number.resize(number + 1, None);
        }
        of_number[number] = Some(answered);
    }
    value
}

/// Integers of 64 bits: what does not fit has no value, nor has a division by 0.
pub(crate) const fn computed(operator: Operator, left: i64, right: i64) -> Option<i64> {
    // A page, a line: a division of 64 bits takes as long as all else that is done for a sample.
    let is_by_bits = left >= 0 && right > 0 && right & (right - 1) == 0;
    match operator {
        Operator::Divide if is_by_bits => Some(left >> right.trailing_zeros()),
        Operator::Remainder if is_by_bits => Some(left & (right - 1)),
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
    }
}

impl Comparison {
    pub(crate) fn holds<T: PartialOrd + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}
