// Panics that are caught, results passed up, drops on the way, checked arithmetic.
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Debug)]
enum Failure {
    Digit(char),
    Empty,
    Large(u64),
}

struct Guard<'a>(&'a mut u32);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0 += 1;
    }
}

#[inline(never)]
fn number(text: &str) -> Result<u64, Failure> {
    if text.is_empty() {
        return Err(Failure::Empty);
    }
    let mut value: u64 = 0;
    for c in text.chars() {
        let digit = c.to_digit(10).ok_or(Failure::Digit(c))?;
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit)))
            .ok_or(Failure::Large(value))?;
    }
    Ok(value)
}

#[inline(never)]
fn sum(texts: &[&str]) -> Result<u64, Failure> {
    let mut sum = 0;
    for text in texts {
        sum += number(text)?;
    }
    Ok(sum)
}

#[inline(never)]
fn pick(values: &[u32], at: usize, dropped: &mut u32) -> u32 {
    let _guard = Guard(dropped);
    let held = vec![at; at % 3 + 1];
    values[at] + held.len() as u32
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let (mut total, mut dropped) = (0, 0);
    for texts in [&["12", "34"][..], &["5", ""], &["99999999999999999999"], &["1", "x2"]] {
        total += match sum(texts) {
            Ok(sum) => sum,
            Err(Failure::Digit(c)) => c as u64,
            Err(Failure::Empty) => 1,
            Err(Failure::Large(value)) => value & 7,
        };
    }
    let values = [3, 1, 4];
    for at in 1..4 {
        let picked = catch_unwind(AssertUnwindSafe(|| pick(&values, at, &mut dropped)));
        total += u64::from(picked.unwrap_or(7));
    }
    std::process::exit((total + u64::from(dropped)) as i32 & 1);
}
