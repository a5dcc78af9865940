// Iterator chains, slices, sorts and arithmetic: what a compiler turns into plain or vector loops.
#[inline(never)]
fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(l, r)| l * r).sum()
}

#[inline(never)]
fn windows(values: &[i32]) -> usize {
    values.windows(3).filter(|w| w[0] < w[1] && w[1] > w[2]).count()
}

#[inline(never)]
fn checksum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(4).fold(0, |sum: u32, chunk| {
        sum.rotate_left(5) ^ u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]])
    })
}

#[inline(never)]
fn primes(limit: usize) -> usize {
    let mut composite = vec![false; limit];
    for n in 2..limit {
        if !composite[n] {
            for multiple in (n * n..limit).step_by(n) {
                composite[multiple] = true;
            }
        }
    }
    composite.iter().skip(2).filter(|it| !**it).count()
}

#[inline(never)]
fn transpose(from: &[[i16; 5]; 5]) -> [[i16; 5]; 5] {
    let mut to = [[0; 5]; 5];
    for (row, line) in from.iter().enumerate() {
        for (column, value) in line.iter().enumerate() {
            to[column][row] = *value;
        }
    }
    to
}

#[inline(never)]
fn longest_run(text: &str) -> usize {
    let mut best = 0;
    let mut run = 0;
    let mut last = None;
    for c in text.bytes() {
        run = if last == Some(c) { run + 1 } else { 1 };
        best = best.max(run);
        last = Some(c);
    }
    best
}

fn main() {
    let left: Vec<f32> = (0..32).map(|i| i as f32 * 0.25).collect();
    let right: Vec<f32> = left.iter().rev().copied().collect();
    let mut total = dot(&left, &right) as usize;
    let mut values: Vec<i32> = (0..36).map(|i| i * 7919 % 131).collect();
    total += windows(&values);
    values.sort_unstable();
    values.dedup();
    total += values.binary_search(&100).unwrap_or_else(|at| at);
    let mut pairs: Vec<(i32, usize)> = values.iter().map(|v| (v % 7, *v as usize)).take(16).collect();
    pairs.sort_by(|l, r| r.0.cmp(&l.0));
    total += pairs[4].1;
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    total += checksum(&bytes) as usize + primes(60);
    let mut block = [[0; 5]; 5];
    block.iter_mut().flatten().zip(0..).for_each(|(cell, n)| *cell = n);
    total += transpose(&transpose(&block))[3][4] as usize;
    total += longest_run("aabbbbccddddddeeef");
    let (even, odd): (Vec<i32>, Vec<i32>) = values.iter().partition(|v| **v % 2 == 0);
    total += even.iter().chain(&odd).max().copied().unwrap_or(0) as usize;
    std::process::exit(total as i32 & 1);
}
