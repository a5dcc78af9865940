//! Numbers: a fluid on a grid of generic scalars, particles as arrays of fields, a sparse solver with compressed rows,
//! a transform of complex numbers, tiles of constant size, two threads.
#[path = "../heap.rs"]
mod heap;

use std::ops::{Add, AddAssign, Div, Index, IndexMut, Mul, Sub};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};

pub trait Scalar:
    Copy + Default + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + AddAssign
{
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

macro_rules! scalar {
    ($($t:ty),*) => {$(
        impl Scalar for $t {
            fn from_f64(value: f64) -> Self { value as $t }
            fn to_f64(self) -> f64 { self as f64 }
        }
    )*};
}
scalar!(f32, f64);

/// A grid with a border of one cell.
pub struct Grid<T> {
    cells: Box<[T]>,
    width: usize,
    height: usize,
}

impl<T: Scalar> Grid<T> {
    fn new(width: usize, height: usize) -> Self {
        let cells = heap::of::<T, _>(|| vec![T::default(); (width + 2) * (height + 2)].into_boxed_slice());
        Grid { cells, width, height }
    }

    fn rows(&self) -> impl Iterator<Item = &[T]> {
        self.cells.chunks_exact(self.width + 2).skip(1).take(self.height)
    }

    #[inline(never)]
    fn relax(&mut self, source: &Grid<T>, rounds: usize) -> T {
        let stride = self.width + 2;
        let quarter = T::from_f64(0.25);
        let mut change = T::default();
        for _ in 0..rounds {
            change = T::default();
            for y in 1..=self.height {
                for x in 1..=self.width {
                    let at = y * stride + x;
                    let around = self.cells[at - 1] + self.cells[at + 1] + self.cells[at - stride] + self.cells[at + stride];
                    let value = (around - source.cells[at]) * quarter;
                    let delta = value - self.cells[at];
                    change += delta * delta;
                    self.cells[at] = value;
                }
            }
        }
        change
    }

    /// The value between cells.
    fn at(&self, x: T, y: T) -> T {
        let clamp = |v: T, limit: usize| v.to_f64().clamp(0.0, limit as f64 - 0.001);
        let (x, y) = (clamp(x, self.width), clamp(y, self.height));
        let (i, j) = (x as usize, y as usize);
        let (s, t) = (T::from_f64(x.fract()), T::from_f64(y.fract()));
        let one = T::from_f64(1.0);
        (self[(i, j)] * (one - s) + self[(i + 1, j)] * s) * (one - t)
            + (self[(i, j + 1)] * (one - s) + self[(i + 1, j + 1)] * s) * t
    }
}

impl<T> Index<(usize, usize)> for Grid<T> {
    type Output = T;
    fn index(&self, (x, y): (usize, usize)) -> &T {
        &self.cells[y * (self.width + 2) + x]
    }
}

impl<T> IndexMut<(usize, usize)> for Grid<T> {
    fn index_mut(&mut self, (x, y): (usize, usize)) -> &mut T {
        &mut self.cells[y * (self.width + 2) + x]
    }
}

pub struct Fluid<T> {
    u: Grid<T>,
    v: Grid<T>,
    pressure: Grid<T>,
    divergence: Grid<T>,
    dye: [Grid<T>; 2],
    step: T,
    steps: u64,
}

impl<T: Scalar> Fluid<T> {
    fn new(width: usize, height: usize) -> Self {
        let grid = || Grid::new(width, height);
        let dye = [grid(), grid()];
        Fluid { u: grid(), v: grid(), pressure: grid(), divergence: grid(), dye, step: T::from_f64(0.1), steps: 0 }
    }

    #[inline(never)]
    fn project(&mut self) -> f64 {
        let half = T::from_f64(0.5);
        for y in 1..=self.u.height {
            for x in 1..=self.u.width {
                let across = self.u[(x + 1, y)] - self.u[(x - 1, y)];
                let down = self.v[(x, y + 1)] - self.v[(x, y - 1)];
                self.divergence[(x, y)] = (across + down) * half;
            }
        }
        let change = self.pressure.relax(&self.divergence, 3);
        for y in 1..=self.u.height {
            for x in 1..=self.u.width {
                let (right, left) = (self.pressure[(x + 1, y)], self.pressure[(x - 1, y)]);
                self.u[(x, y)] = self.u[(x, y)] - (right - left) * half;
                let (below, above) = (self.pressure[(x, y + 1)], self.pressure[(x, y - 1)]);
                self.v[(x, y)] = self.v[(x, y)] - (below - above) * half;
            }
        }
        change.to_f64()
    }

    #[inline(never)]
    fn carry(&mut self) {
        let [old, new] = &mut self.dye;
        for y in 1..=old.height {
            for x in 1..=old.width {
                let back_x = T::from_f64(x as f64) - self.u[(x, y)] * self.step;
                let back_y = T::from_f64(y as f64) - self.v[(x, y)] * self.step;
                new[(x, y)] = old.at(back_x, back_y);
            }
        }
        self.dye.swap(0, 1);
        self.steps += 1;
    }

    #[inline(never)]
    fn stir(&mut self) {
        let x = 1 + (self.steps * 7 % self.u.width as u64) as usize;
        let y = 1 + (self.steps * 3 % self.u.height as u64) as usize;
        self.u[(x, y)] += T::from_f64(3.0);
        self.v[(x, y)] += T::from_f64(-2.0);
        self.dye[0][(x, y)] += T::from_f64(1.0);
    }
}

/// Particles, a vector for each field.
#[derive(Default)]
pub struct Particles {
    x: Vec<f32>,
    y: Vec<f32>,
    age: Vec<u16>,
    species: Vec<Species>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Species {
    Smoke,
    Spark { heat: f32 },
}

impl Particles {
    fn push(&mut self, x: f32, y: f32, species: Species) {
        self.x.push(x);
        self.y.push(y);
        self.age.push(0);
        self.species.push(species);
    }

    #[inline(never)]
    fn drift(&mut self, fluid: &Fluid<f32>) {
        let places = self.x.iter_mut().zip(self.y.iter_mut());
        for ((x, y), (age, species)) in places.zip(self.age.iter_mut().zip(self.species.iter_mut())) {
            let (cx, cy) = (*x as usize % fluid.u.width, *y as usize % fluid.u.height);
            *x += fluid.u[(cx, cy)] * 0.1;
            *y += fluid.v[(cx, cy)] * 0.1;
            *age = age.saturating_add(1);
            if let Species::Spark { heat } = species {
                *heat *= 0.98;
                *y -= *heat;
            }
        }
    }

    #[inline(never)]
    fn compact(&mut self) -> usize {
        let before = self.x.len();
        let mut at = 0;
        while at < self.x.len() {
            let cold = matches!(self.species[at], Species::Spark { heat } if heat < 0.05);
            if cold || self.age[at] > 200 {
                self.x.swap_remove(at);
                self.y.swap_remove(at);
                self.age.swap_remove(at);
                self.species.swap_remove(at);
            } else {
                at += 1;
            }
        }
        before - self.x.len()
    }
}

/// A matrix of compressed rows.
pub struct Sparse {
    starts: Vec<u32>,
    entries: Vec<(u32, f64)>,
    diagonal: Vec<f64>,
}

impl Sparse {
    fn laplacian(side: usize) -> Self {
        let cells = side * side;
        let mut starts = heap::of::<u32, _>(|| Vec::with_capacity(cells + 1));
        let mut entries = heap::of::<(u32, f64), _>(|| Vec::with_capacity(4 * cells));
        let mut diagonal = heap::of::<f64, _>(|| Vec::with_capacity(cells));
        for cell in 0..cells {
            starts.push(entries.len() as u32);
            let (x, y) = (cell % side, cell / side);
            let around = [(x > 0, -1), (x + 1 < side, 1), (y > 0, -(side as i64)), (y + 1 < side, side as i64)];
            for (_, step) in around.into_iter().filter(|(inside, _)| *inside) {
                entries.push(((cell as i64 + step) as u32, -1.0));
            }
            diagonal.push(4.01);
        }
        starts.push(entries.len() as u32);
        Sparse { starts, entries, diagonal }
    }

    #[inline(never)]
    fn multiply(&self, vector: &[f64], out: &mut [f64]) {
        let rows = self.starts.windows(2).zip(&self.diagonal).zip(vector).zip(out);
        for (((bounds, diagonal), own), out) in rows {
            let row = &self.entries[bounds[0] as usize..bounds[1] as usize];
            *out = diagonal * own + row.iter().map(|&(column, value)| value * vector[column as usize]).sum::<f64>();
        }
    }
}

pub struct Solver {
    matrix: Sparse,
    solution: Vec<f64>,
    residual: Vec<f64>,
    direction: Vec<f64>,
    product: Vec<f64>,
    norms: [f64; 8],
    round: usize,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Solver {
    fn new(side: usize) -> Self {
        let vector = || heap::of::<f64, _>(|| vec![0.0; side * side]);
        let matrix = Sparse::laplacian(side);
        let (solution, residual, direction, product) = (vector(), vector(), vector(), vector());
        Solver { matrix, solution, residual, direction, product, norms: [0.0; 8], round: 0 }
    }

    #[inline(never)]
    fn restart(&mut self) {
        for (i, residual) in self.residual.iter_mut().enumerate() {
            *residual = ((i * 31 + self.round) % 17) as f64 - 8.0;
        }
        self.direction.copy_from_slice(&self.residual);
        self.solution.fill(0.0);
    }

    #[inline(never)]
    fn step(&mut self) -> f64 {
        self.matrix.multiply(&self.direction, &mut self.product);
        let before = dot(&self.residual, &self.residual);
        let length = before / (dot(&self.direction, &self.product) + 1e-30);
        for (i, direction) in self.direction.iter().enumerate() {
            self.solution[i] += length * direction;
            self.residual[i] -= length * self.product[i];
        }
        let after = dot(&self.residual, &self.residual);
        for (direction, residual) in self.direction.iter_mut().zip(&self.residual) {
            *direction = residual + after / (before + 1e-30) * *direction;
        }
        self.norms[self.round % 8] = after;
        self.round += 1;
        after
    }
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Complex {
    re: f32,
    im: f32,
}

impl Mul for Complex {
    type Output = Complex;
    fn mul(self, o: Complex) -> Complex {
        Complex { re: self.re * o.re - self.im * o.im, im: self.re * o.im + self.im * o.re }
    }
}

/// Transforms of N numbers.
pub struct Fourier<const N: usize> {
    twiddles: [Complex; N],
    reversed: [u16; N],
    done: u64,
}

impl<const N: usize> Fourier<N> {
    fn fill(&mut self) {
        let bits = N.trailing_zeros();
        for i in 0..N {
            let angle = -std::f64::consts::TAU * i as f64 / N as f64;
            self.twiddles[i] = Complex { re: angle.cos() as f32, im: angle.sin() as f32 };
            self.reversed[i] = (i as u16).reverse_bits() >> (16 - bits);
        }
    }

    #[inline(never)]
    fn transform(&mut self, values: &mut [Complex]) {
        self.done += 1;
        for i in 0..N {
            let j = self.reversed[i] as usize;
            if i < j {
                values.swap(i, j);
            }
        }
        let mut width = 2;
        while width <= N {
            for block in values.chunks_exact_mut(width) {
                let (low, high) = block.split_at_mut(width / 2);
                for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                    let turned = *b * self.twiddles[k * (N / width)];
                    (*a, *b) = (
                        Complex { re: a.re + turned.re, im: a.im + turned.im },
                        Complex { re: a.re - turned.re, im: a.im - turned.im },
                    );
                }
            }
            width *= 2;
        }
    }
}

/// What the two threads share.
pub struct Shared {
    spectrum: RwLock<[f32; 64]>,
    peaks: Mutex<Vec<Peak>>,
    frames: AtomicUsize,
    loudest: AtomicU32,
}

pub struct Peak {
    bin: u16,
    count: u32,
    power: f64,
}

#[inline(never)]
fn publish(values: &[Complex], shared: &Shared) {
    let mut spectrum = shared.spectrum.write().unwrap();
    for (bin, value) in spectrum.iter_mut().zip(values) {
        *bin = 0.9 * *bin + 0.1 * (value.re * value.re + value.im * value.im);
    }
    drop(spectrum);
    shared.frames.fetch_add(1, Relaxed);
}

#[inline(never)]
fn collect(shared: &Shared) -> f64 {
    let spectrum = shared.spectrum.read().unwrap();
    let mut peaks = shared.peaks.lock().unwrap();
    for bin in 1..63 {
        if spectrum[bin] > spectrum[bin - 1] && spectrum[bin] > spectrum[bin + 1] {
            let known = peaks.iter_mut().find(|peak| peak.bin == bin as u16);
            if let Some(peak) = known {
                peak.count += 1;
                peak.power = 0.5 * (peak.power + f64::from(spectrum[bin]));
            } else if peaks.len() < 40 {
                peaks.push(Peak { bin: bin as u16, count: 1, power: 0.0 });
            }
        }
    }
    peaks.sort_unstable_by(|a, b| b.power.total_cmp(&a.power));
    if let Some(peak) = peaks.first() {
        shared.loudest.store(u32::from(peak.bin), Relaxed);
    }
    peaks.iter().map(|peak| peak.power).sum()
}

fn analyse(shared: Arc<Shared>) {
    heap::thread();
    let mut fourier = heap::of::<Fourier<256>, _>(|| {
        Box::new(Fourier::<256> { twiddles: [Complex::default(); 256], reversed: [0; 256], done: 0 })
    });
    fourier.fill();
    let mut values = heap::of::<Complex, _>(|| vec![Complex::default(); 256]);
    let mut solver = heap::of::<Box<Solver>, _>(|| Vec::with_capacity(1));
    let made = Solver::new(14);
    solver.push(heap::of::<Solver, _>(|| Box::new(made)));
    let mut phase = 0u32;
    let mut sum = 0.0;
    loop {
        for value in &mut values {
            phase = phase.wrapping_mul(1664525).wrapping_add(1013904223);
            *value = Complex { re: (phase >> 16) as f32 / 65536.0 - 0.5, im: (phase & 255) as f32 / 999.0 };
        }
        fourier.transform(&mut values);
        publish(&values, &shared);
        for solver in &mut solver {
            if solver.round % 16 == 0 {
                solver.restart();
            }
            sum += solver.step();
        }
        std::hint::black_box(sum + shared.loudest.load(Relaxed) as f64);
    }
}

fn main() {
    heap::init();
    let peaks = Mutex::new(heap::of::<Peak, _>(|| Vec::with_capacity(40)));
    let (spectrum, frames) = (RwLock::new([0.0; 64]), AtomicUsize::new(0));
    let shared = heap::arc::<Shared, _>(|| Arc::new(Shared { spectrum, peaks, frames, loudest: AtomicU32::new(0) }));
    let fluid = Fluid::<f32>::new(60, 40);
    let mut fluid = heap::of::<Fluid<f32>, _>(|| Box::new(fluid));
    let coarse = Fluid::<f64>::new(20, 15);
    let mut coarse = heap::of::<Fluid<f64>, _>(|| Box::new(coarse));
    let fields = Particles {
        x: heap::of::<f32, _>(|| Vec::with_capacity(1000)),
        y: heap::of::<f32, _>(|| Vec::with_capacity(1000)),
        age: heap::of::<u16, _>(|| Vec::with_capacity(1000)),
        species: heap::of::<Species, _>(|| Vec::with_capacity(1000)),
    };
    let mut particles = heap::of::<Particles, _>(|| Box::new(fields));
    let other = shared.clone();
    std::thread::spawn(move || analyse(other));
    let mut sum = 0.0;
    while heap::more() {
        fluid.stir();
        coarse.stir();
        sum += fluid.project() + coarse.project();
        fluid.carry();
        coarse.carry();
        for _ in 0..4 {
            particles.drift(&fluid);
        }
        sum += particles.compact() as f64;
        while particles.x.len() < 1000 {
            let (random, age) = (heap::random(), particles.x.len());
            let species = if age % 3 == 0 { Species::Spark { heat: 1.0 } } else { Species::Smoke };
            particles.push((random % 60) as f32, (random >> 20) as f32 % 40.0, species);
        }
        for _ in 0..4 {
            sum += collect(&shared);
        }
        sum += fluid.dye[0].rows().map(|row| f64::from(row[row.len() / 2])).sum::<f64>();
    }
    std::hint::black_box(sum + shared.frames.load(Relaxed) as f64);
    std::process::exit(0);
}
