//! A hand-made executor: async functions, futures written by hand, channels of Rc<RefCell>, a timer wheel.
#[path = "../heap.rs"]
mod heap;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

pub struct Message {
    from: u32,
    kind: Kind,
    sent: u64,
}

#[derive(Clone)]
pub enum Kind {
    Text { length: u16, first: u8 },
    Numbers([f32; 6]),
    Stop,
}

pub struct Channel {
    queue: RefCell<VecDeque<Message>>,
    received: Cell<u64>,
    waiting: Cell<u32>,
}

pub struct Receive {
    channel: Rc<Channel>,
    polls: u32,
}

impl Future for Receive {
    type Output = Message;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Message> {
        self.polls += 1;
        let message = self.channel.queue.borrow_mut().pop_front();
        match message {
            Some(message) => {
                self.channel.received.set(self.channel.received.get() + 1);
                Poll::Ready(message)
            }
            None => {
                self.channel.waiting.set(self.channel.waiting.get() + 1);
                Poll::Pending
            }
        }
    }
}

pub struct Wheel {
    slots: [u32; 32],
    now: u64,
    fired: u64,
}

pub struct Sleep {
    wheel: Rc<RefCell<Wheel>>,
    until: u64,
}

impl Future for Sleep {
    type Output = u64;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u64> {
        let mut wheel = self.wheel.borrow_mut();
        wheel.slots[self.until as usize % 32] += 1;
        if wheel.now < self.until {
            return Poll::Pending;
        }
        wheel.fired += 1;
        Poll::Ready(wheel.now - self.until)
    }
}

#[derive(Default)]
pub struct Tally {
    texts: u64,
    numbers: f64,
    late: u64,
    by_sender: [u32; 16],
}

async fn consume(channel: Rc<Channel>, wheel: Rc<RefCell<Wheel>>, tally: Rc<RefCell<Tally>>) {
    let mut history = [0u64; 8];
    let mut count = 0usize;
    loop {
        let message = Receive { channel: channel.clone(), polls: 0 }.await;
        history[count % 8] = message.sent;
        count += 1;
        {
            let mut tally = tally.borrow_mut();
            tally.by_sender[message.from as usize % 16] += 1;
            match &message.kind {
                Kind::Text { length, first } => tally.texts += *length as u64 + *first as u64,
                Kind::Numbers(numbers) => tally.numbers += numbers.iter().sum::<f32>() as f64,
                Kind::Stop => tally.late += history[count % 8],
            }
        }
        if count % 5 == 0 {
            let until = wheel.borrow().now + 1;
            let late = Sleep { wheel: wheel.clone(), until }.await;
            tally.borrow_mut().late += late;
        }
    }
}

pub struct Produce {
    targets: Vec<Rc<Channel>>,
    wheel: Rc<RefCell<Wheel>>,
    id: u32,
    made: u64,
}

impl Future for Produce {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let now = self.wheel.borrow().now;
        for _ in 0..6 {
            self.made += 1;
            let target = &self.targets[self.made as usize % self.targets.len()];
            let kind = match self.made % 7 {
                0 => Kind::Stop,
                1..=3 => Kind::Text { length: self.made as u16, first: b'x' },
                n => Kind::Numbers([n as f32; 6]),
            };
            let mut queue = target.queue.borrow_mut();
            if queue.len() < 60 {
                queue.push_back(Message { from: self.id, kind, sent: now });
            }
        }
        Poll::Pending
    }
}

static WAKES: AtomicU64 = AtomicU64::new(0);

pub struct Signal {
    wakes: AtomicU64,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Relaxed);
        WAKES.fetch_add(1, Relaxed);
    }
}

pub struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    polls: u64,
    weight: u32,
    name: &'static str,
}

pub struct Executor {
    tasks: Vec<Task>,
    ready: VecDeque<u32>,
    polled: u64,
}

impl Executor {
    fn spawn<F: Future<Output = ()> + 'static>(
        &mut self,
        type_name: &str,
        name: &'static str,
        future: F,
    ) {
        let bytes = std::mem::size_of::<F>();
        let future = heap::named(type_name.to_owned(), bytes, || Box::pin(future));
        self.tasks.push(Task { future, polls: 0, weight: name.len() as u32, name });
        self.ready.push_back(self.tasks.len() as u32 - 1);
    }

    #[inline(never)]
    fn run(&mut self, context: &mut Context<'_>, turns: usize) -> u64 {
        let mut done = 0;
        for _ in 0..turns {
            let Some(index) = self.ready.pop_front() else { break };
            let task = &mut self.tasks[index as usize];
            task.polls += task.weight as u64;
            self.polled += 1;
            match task.future.as_mut().poll(context) {
                Poll::Pending => self.ready.push_back(index),
                Poll::Ready(()) => done += 1,
            }
            if self.polled % 8 == 0 {
                context.waker().wake_by_ref();
            }
        }
        done
    }

    #[inline(never)]
    fn longest(&self) -> u64 {
        let longest = self.tasks.iter().max_by_key(|task| task.polls).unwrap();
        longest.polls + longest.name.len() as u64
    }
}

#[inline(never)]
fn turn(wheel: &RefCell<Wheel>) -> u32 {
    let mut wheel = wheel.borrow_mut();
    wheel.now += 1;
    let slot = wheel.now as usize % 32;
    std::mem::take(&mut wheel.slots[slot])
}

#[inline(never)]
fn backlog(channels: &[Rc<Channel>]) -> u64 {
    channels
        .iter()
        .map(|c| c.queue.borrow().iter().map(|m| m.sent & 3).sum::<u64>() + c.received.get())
        .sum()
}

fn main() {
    heap::init();
    heap::global("WAKES", &WAKES, "AtomicU64");
    let wheel = heap::rc::<RefCell<Wheel>, _>(|| {
        Rc::new(RefCell::new(Wheel { slots: [0; 32], now: 0, fired: 0 }))
    });
    let tally = heap::rc::<RefCell<Tally>, _>(|| Rc::new(RefCell::new(Tally::default())));
    let mut channels = heap::of::<Rc<Channel>, _>(|| Vec::with_capacity(40));
    for _ in 0..40 {
        let queue = RefCell::new(heap::of::<Message, _>(|| VecDeque::with_capacity(64)));
        let channel = Channel { queue, received: Cell::new(0), waiting: Cell::new(0) };
        channels.push(heap::rc::<Channel, _>(|| Rc::new(channel)));
    }
    let mut executor = heap::of::<Executor, _>(|| {
        Box::new(Executor { tasks: Vec::new(), ready: VecDeque::new(), polled: 0 })
    });
    executor.tasks = heap::of::<Task, _>(|| Vec::with_capacity(64));
    executor.ready = heap::of::<u32, _>(|| VecDeque::with_capacity(64));
    for channel in &channels {
        let consumer = consume(channel.clone(), wheel.clone(), tally.clone());
        executor.spawn("{async_fn_env#0}", "consumer", consumer);
    }
    for id in 0..20 {
        let targets = heap::of::<Rc<Channel>, _>(|| channels[id..].to_vec());
        let producer = Produce { targets, wheel: wheel.clone(), id: id as u32, made: 0 };
        executor.spawn("rs_tasks::Produce", "producer", producer);
    }
    let signal = heap::arc::<Signal, _>(|| Arc::new(Signal { wakes: AtomicU64::new(0) }));
    let waker = Waker::from(signal.clone());
    let mut context = Context::from_waker(&waker);
    let mut sum = 0;
    while heap::more() {
        for _ in 0..20 {
            sum += executor.run(&mut context, 60) + turn(&wheel) as u64;
        }
        sum += executor.longest() + backlog(&channels);
    }
    std::hint::black_box(sum + tally.borrow().texts + signal.wakes.load(Relaxed));
    std::process::exit(0);
}
