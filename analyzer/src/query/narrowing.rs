//! Filters over the rows of a chunk, a part of the expression after the other: what one part says of all rows is worked
//! out without a look at the other parts for each of them.

use crate::query::expression::{Answered, Answers, Formula, computed};
use crate::query::field::At;

/// A number for each of some rows.
enum Numbers {
    /// The same for all.
    Same(Option<i64>),
    Each(Vec<Option<i64>>),
}

impl Numbers {
    fn map(self, change: impl Fn(Option<i64>) -> Option<i64>) -> Self {
        match self {
            Self::Same(number) => Self::Same(change(number)),
            Self::Each(mut numbers) => {
                numbers.iter_mut().for_each(|number| *number = change(*number));
                Self::Each(numbers)
            }
        }
    }

    /// Puts two together.
    fn with(self, other: Self, put: impl Fn(Option<i64>, Option<i64>) -> Option<i64>) -> Self {
        match (self, other) {
            (one, Self::Same(other)) => one.map(|one| put(one, other)),
            (Self::Same(one), other) => other.map(|other| put(one, other)),
            (Self::Each(mut all), Self::Each(others)) => {
                all.iter_mut().zip(others).for_each(|(one, other)| *one = put(*one, other));
                Self::Each(all)
            }
        }
    }
}

impl Formula {
    /// Leaves of the rows of a chunk, which `of` is any row of, those of which it is true; or false, where that is asked for.
    pub(crate) fn narrow(
        &self,
        is_so: bool,
        of: At<'_>,
        rows: &mut Vec<u16>,
        answers: &mut Answers,
    ) {
        match self {
            Self::Not(inner) => inner.narrow(!is_so, of, rows, answers),
            // Both have to be true, or both false.
            Self::And(both) | Self::Or(both) if is_so == matches!(self, Self::And(_)) => {
                both.0.narrow(is_so, of, rows, answers);
                both.1.narrow(is_so, of, rows, answers);
            }
            Self::And(both) | Self::Or(both) => {
                both.0.narrow_either(&both.1, is_so, of, rows, answers);
            }
            Self::CompareNumbers(relation, both) => {
                let left = both.0.numbers(of, rows, answers);
                let right = both.1.numbers(of, rows, answers);
                let holds = left
                    .with(right, |left, right| Some(i64::from(relation.holds(&left?, &right?))));
                match holds {
                    Numbers::Same(holds) => rows.retain(|_| holds == Some(is_so.into())),
                    Numbers::Each(holds) => {
                        let mut holds = holds.into_iter();
                        rows.retain(|_| holds.next() == Some(Some(is_so.into())));
                    }
                }
            }
            Self::Kept(table, slot, _) => rows.retain(|row| {
                let at = of.row(*row);
                let truth = match answers.known(*slot, at.number(*table)) {
                    Some(Answered::Bool(known)) => Some(known),
                    _ => self.truth(at, answers),
                };
                truth == Some(is_so)
            }),
            _ => rows.retain(|row| self.truth(of.row(*row), answers) == Some(is_so)),
        }
    }

    /// The same for two parts, of which one is enough.
    fn narrow_either(
        &self,
        other: &Self,
        is_so: bool,
        of: At<'_>,
        rows: &mut Vec<u16>,
        answers: &mut Answers,
    ) {
        // What one of them decides is not asked of the other.
        let mut decided = rows.clone();
        self.narrow(is_so, of, &mut decided, answers);
        let mut rest = rows.clone();
        let mut known = decided.iter().copied().peekable();
        rest.retain(|row| known.next_if_eq(row).is_none());
        other.narrow(is_so, of, &mut rest, answers);
        let (mut decided, mut rest) = (decided.into_iter().peekable(), rest.into_iter().peekable());
        rows.retain(|row| decided.next_if_eq(row).is_some() || rest.next_if_eq(row).is_some());
    }

    /// Its numbers for some rows.
    fn numbers(&self, of: At<'_>, rows: &[u16], answers: &mut Answers) -> Numbers {
        match self {
            Self::Constant(_) => Numbers::Same(self.number(of, answers)),
            Self::Field(field) => {
                Numbers::Each(rows.iter().map(|row| of.row(*row).number_of(*field)).collect())
            }
            Self::Negate(inner) => {
                inner.numbers(of, rows, answers).map(|number| number?.checked_neg())
            }
            Self::Number(operator, both) => {
                let left = both.0.numbers(of, rows, answers);
                let right = both.1.numbers(of, rows, answers);
                left.with(right, |left, right| computed(*operator, left?, right?))
            }
            _ => {
                let number = |row: &u16| self.number(of.row(*row), answers);
                Numbers::Each(rows.iter().map(number).collect())
            }
        }
    }
}
