//! Async without a runtime: state machines that await one another, a join, wakers by hand, threads with channels,
//! statics.
#[path = "../heap.rs"]
mod heap;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Clone, Default)]
pub struct Reading {
    sensor: u32,
    value: f64,
    quality: u8,
    window: [i16; 6],
}

pub enum Command {
    Sample(Reading),
    Calibrate { sensor: u32, offset: f64, gain: f32 },
    Flush,
}

pub struct Mailbox {
    queue: Mutex<VecDeque<Command>>,
    delivered: AtomicU64,
    refused: AtomicU32,
}

impl Mailbox {
    fn post(&self, command: Command) -> bool {
        let mut queue = self.queue.lock().unwrap();
        if queue.len() == 120 {
            self.refused.fetch_add(1, Relaxed);
            return false;
        }
        queue.push_back(command);
        true
    }
}

pub struct Next<'a> {
    mailbox: &'a Mailbox,
    waited: u32,
}

impl Future for Next<'_> {
    type Output = (Command, u32);
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.mailbox.queue.lock().unwrap().pop_front() {
            Some(command) => {
                self.mailbox.delivered.fetch_add(1, Relaxed);
                return Poll::Ready((command, self.waited));
            }
            None => context.waker().wake_by_ref(),
        }
        self.waited += 1;
        Poll::Pending
    }
}

pub struct Yield(bool);

impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

pub struct Calibration {
    offset: f64,
    gain: f32,
    uses: u32,
}

pub struct Station {
    last: Vec<Reading>,
    calibrations: BTreeMap<u32, Calibration>,
    histogram: Box<[u32]>,
    flushes: u64,
    sum: f64,
}

impl Station {
    #[inline(never)]
    fn sample(&mut self, reading: Reading) {
        let (mut value, count) = (reading.value, self.last.len());
        if let Some(calibration) = self.calibrations.get_mut(&(reading.sensor % 96)) {
            value = (value + calibration.offset) * calibration.gain as f64;
            calibration.uses += 1;
        }
        let bins = self.histogram.len();
        self.histogram[(value.abs() as usize) % bins] += 1;
        self.sum += value;
        let place = reading.sensor as usize % count;
        self.last[place] = reading;
    }

    #[inline(never)]
    fn spread(&self) -> f64 {
        let best = self.last.iter().filter(|r| r.quality > 2).map(|r| r.value).fold(0.0, f64::max);
        let windows: i64 = self.last.iter().flat_map(|r| r.window.iter()).map(|&w| w as i64).sum();
        best + windows as f64
    }
}

async fn drain(station: &mut Station, mailbox: &Mailbox, limit: u32) -> u32 {
    let mut seen = [0u32; 4];
    for round in 0..limit {
        let (command, waited) = Next { mailbox, waited: 0 }.await;
        seen[round as usize % 4] += waited + 1;
        match command {
            Command::Sample(reading) => station.sample(reading),
            Command::Calibrate { sensor, offset, gain } => {
                let calibration = station.calibrations.get_mut(&(sensor % 96)).unwrap();
                calibration.offset = 0.5 * (calibration.offset + offset);
                calibration.gain = gain;
            }
            Command::Flush => {
                station.flushes += 1;
                Yield(false).await;
            }
        }
    }
    seen.iter().sum()
}

async fn serve(mut station: Station, mailbox: Arc<Mailbox>, totals: Arc<Totals>) {
    loop {
        let waits = drain(&mut station, &mailbox, 30).await;
        totals.waits.fetch_add(waits as u64, Relaxed);
        let spread = station.spread();
        *totals.spread.lock().unwrap() += spread;
    }
}

pub struct Totals {
    waits: AtomicU64,
    spread: Mutex<f64>,
    wakes: [AtomicU32; 8],
}

pub struct Waking {
    totals: Arc<Totals>,
    place: usize,
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.totals.wakes[self.place % 8].fetch_add(1, Relaxed);
    }
}

pub struct Feeder {
    mailboxes: Arc<[Arc<Mailbox>]>,
    made: u64,
    state: u64,
}

impl Iterator for Feeder {
    type Item = Command;
    fn next(&mut self) -> Option<Command> {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.made += 1;
        let sensor = (self.state >> 40) as u32;
        Some(match self.state >> 60 {
            0 => Command::Flush,
            1 | 2 => Command::Calibrate { sensor, offset: 0.25, gain: 1.5 },
            n => Command::Sample(Reading {
                sensor,
                value: (sensor & 255) as f64,
                quality: n as u8,
                window: [n as i16; 6],
            }),
        })
    }
}

impl Future for Feeder {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let mailboxes = self.mailboxes.clone();
        for mailbox in mailboxes.iter() {
            for command in self.by_ref().take(8) {
                if !mailbox.post(command) {
                    break;
                }
            }
        }
        POSTED.fetch_add(1, Relaxed);
        Poll::Pending
    }
}

/// Polls each of its parts in turn.
pub struct Join {
    parts: Vec<Part>,
    turns: u64,
}

pub struct Part {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    polls: u32,
    skipped: u32,
}

impl Future for Join {
    type Output = u64;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let this = &mut *self;
        this.turns += 1;
        for (i, part) in this.parts.iter_mut().enumerate() {
            if (this.turns + i as u64) % 5 == 0 {
                part.skipped += 1;
                continue;
            }
            part.polls += 1;
            let _ = part.future.as_mut().poll(context);
        }
        if this.turns % 16 == 0 {
            Poll::Ready(this.turns)
        } else {
            Poll::Pending
        }
    }
}

static POSTED: AtomicU64 = AtomicU64::new(0);

fn station() -> Station {
    let mut last = heap::of::<Reading, _>(|| Vec::with_capacity(48));
    last.resize(48, Reading::default());
    let mut calibrations = BTreeMap::new();
    heap::tree::<u32, Calibration, _>(|| {
        for sensor in 0..96 {
            calibrations.insert(sensor, Calibration { offset: 0.0, gain: 1.0, uses: 0 });
        }
    });
    let histogram = heap::of::<u32, _>(|| vec![0u32; 64].into_boxed_slice());
    Station { last, calibrations, histogram, flushes: 0, sum: 0.0 }
}

fn part<F: Future<Output = ()> + Send + 'static>(type_name: &str, future: F) -> Part {
    let bytes = std::mem::size_of::<F>();
    let future = heap::named(type_name.to_owned(), bytes, || Box::pin(future));
    Part { future, polls: 0, skipped: 0 }
}

fn main() {
    heap::init();
    heap::global("POSTED", &POSTED, "AtomicU64");
    let totals = heap::arc::<Totals, _>(|| {
        let wakes = Default::default();
        Arc::new(Totals { waits: AtomicU64::new(0), spread: Mutex::new(0.0), wakes })
    });
    let mailboxes: Vec<Arc<Mailbox>> = (0..12)
        .map(|_| {
            let queue = Mutex::new(heap::of::<Command, _>(|| VecDeque::with_capacity(128)));
            let mailbox =
                Mailbox { queue, delivered: AtomicU64::new(0), refused: AtomicU32::new(0) };
            heap::arc::<Mailbox, _>(|| Arc::new(mailbox))
        })
        .collect();
    let mut parts = heap::of::<Part, _>(|| Vec::with_capacity(16));
    for mailbox in &mailboxes {
        parts.push(part(
            "serve::{async_fn_env#0}",
            serve(station(), mailbox.clone(), totals.clone()),
        ));
    }
    let feeder = Feeder { mailboxes: mailboxes.clone().into(), made: 0, state: 99 };
    parts.push(part("rs_reactor::Feeder", feeder));
    let mut join = heap::of::<Join, _>(|| Box::pin(Join { parts, turns: 0 }));
    let waking = Waking { totals: totals.clone(), place: 3 };
    let waker = Waker::from(heap::arc::<Waking, _>(|| Arc::new(waking)));
    let mut context = Context::from_waker(&waker);
    let mut sum = 0;
    while heap::more() {
        while let Poll::Pending = join.as_mut().poll(&mut context) {
            sum += 1;
        }
    }
    std::hint::black_box(sum + totals.waits.load(Relaxed));
    std::process::exit(0);
}
