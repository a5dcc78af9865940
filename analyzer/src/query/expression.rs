//! Expressions over the fields of a sample, and their values.
//!
//! Operators mean what they mean in the Common Formula Language
//! (<https://github.com/google/cel-spec/blob/master/doc/langdef.md>), where a field without a value is an error: `&&`
//! and `||` have a value in spite of one where the other side decides, everything else has none.

use crate::query::field::{At, Column, Field, Value};
use std::borrow::Cow;

/// An operator of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
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
    Binary(Operator, Box<(Formula, Formula)>),
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
enum Answered {
    None,
    Bool(bool),
    Number(i64),
}

impl Formula {
    /// Its value for one sample.
    pub(crate) fn value<'a>(&'a self, at: At<'a>, answers: &mut Answers) -> Value<'a> {
        match self {
            Self::Constant(value) => value.clone(),
            Self::Field(field) => at.value(*field),
            Self::And(both) => decided_by(false, both, at, answers),
            Self::Or(both) => decided_by(true, both, at, answers),
            Self::Not(inner) => match inner.value(at, answers) {
                Value::Bool(is_so) => Value::Bool(!is_so),
                _ => Value::None,
            },
            Self::Negate(inner) => match inner.value(at, answers) {
                Value::Number(number) => number.checked_neg().map_or(Value::None, Value::Number),
                _ => Value::None,
            },
            Self::Binary(operator, both) => {
                let left = both.0.value(at, answers);
                binary(*operator, left, both.1.value(at, answers))
            }
            Self::IsNone(inner) => Value::Bool(inner.value(at, answers) == Value::None),
            Self::Test(test, both) => {
                match (both.0.value(at, answers), both.1.value(at, answers)) {
                    (Value::Text(text), Value::Text(part)) => Value::Bool(match test {
                        TextTest::StartsWith => text.starts_with(&*part),
                        TextTest::EndsWith => text.ends_with(&*part),
                        TextTest::Contains => text.contains(&*part),
                    }),
                    _ => Value::None,
                }
            }
            Self::Length(inner) => match inner.value(at, answers) {
                Value::Text(text) => Value::Number(text.chars().count() as i64),
                _ => Value::None,
            },
            Self::In(inner, list) => match inner.value(at, answers) {
                Value::None => Value::None,
                value => Value::Bool(list.iter().any(|it| it.value(at, answers) == value)),
            },
            Self::Conditional(parts) => match parts.0.value(at, answers) {
                Value::Bool(true) => parts.1.value(at, answers),
                Value::Bool(false) => parts.2.value(at, answers),
                _ => Value::None,
            },
            Self::Kept(table, slot, inner) => kept((*table, *slot), inner, at, answers),
        }
    }

    /// Tells whether it is true for a sample; what has no value is not.
    pub(crate) fn is_true(&self, at: At<'_>, answers: &mut Answers) -> bool {
        self.value(at, answers) == Value::Bool(true)
    }

    /// Tells whether it speaks of a field.
    pub(crate) fn has(&self, field: Field) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Field(own) => *own == field,
            Self::And(both) | Self::Or(both) | Self::Binary(_, both) | Self::Test(_, both) => {
                both.0.has(field) || both.1.has(field)
            }
            Self::Not(inner) | Self::Negate(inner) | Self::IsNone(inner) | Self::Length(inner) => {
                inner.has(field)
            }
            Self::Kept(_, _, inner) => inner.has(field),
            Self::In(inner, list) => inner.has(field) || list.iter().any(|it| it.has(field)),
            Self::Conditional(parts) => {
                parts.0.has(field) || parts.1.has(field) || parts.2.has(field)
            }
        }
    }
}

/// `&&`, which false decides, and `||`, which true decides.
fn decided_by<'a>(
    decisive: bool,
    both: &'a (Formula, Formula),
    at: At<'a>,
    answers: &mut Answers,
) -> Value<'a> {
    let left = both.0.value(at, answers);
    if left == Value::Bool(decisive) {
        return left;
    }
    let right = both.1.value(at, answers);
    match (left, right) {
        (_, Value::Bool(right)) if right == decisive => Value::Bool(decisive),
        (Value::Bool(_), Value::Bool(_)) => Value::Bool(!decisive),
        _ => Value::None,
    }
}

fn kept<'a>(
    (table, slot): (Column, usize),
    inner: &'a Formula,
    at: At<'a>,
    answers: &mut Answers,
) -> Value<'a> {
    let number = at.number(table) as usize;
    let known = answers.0.get(slot).and_then(|of_number| of_number.get(number).copied().flatten());
    if let Some(known) = known {
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
    // The number of what has no entry is the largest: it is asked anew.
    if number < u32::MAX as usize {
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

fn binary<'a>(operator: Operator, left: Value<'a>, right: Value<'a>) -> Value<'a> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => of_numbers(operator, left, right),
        (Value::Text(left), Value::Text(right)) => match operator {
            Operator::Add => Value::Text(Cow::Owned(left.into_owned() + &right)),
            _ => compared(operator, &left, &right),
        },
        (Value::Bool(left), Value::Bool(right)) => compared(operator, &left, &right),
        _ => Value::None,
    }
}

/// Integers of 64 bits: what does not fit has no value, nor has a division by 0.
fn of_numbers(operator: Operator, left: i64, right: i64) -> Value<'static> {
    let number = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        _ => return compared(operator, &left, &right),
    };
    number.map_or(Value::None, Value::Number)
}

fn compared<T: PartialOrd>(operator: Operator, left: &T, right: &T) -> Value<'static> {
    Value::Bool(match operator {
        Operator::Equal => left == right,
        Operator::NotEqual => left != right,
        Operator::Less => left < right,
        Operator::LessOrEqual => left <= right,
        Operator::Greater => left > right,
        Operator::GreaterOrEqual => left >= right,
        _ => return Value::None,
    })
}
