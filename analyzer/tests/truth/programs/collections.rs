// Vec, HashMap, BTreeMap, VecDeque, BinaryHeap: the standard library's own loops.
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

#[derive(Clone, Debug)]
struct Item {
    id: u32,
    name: String,
    weight: f64,
}

#[inline(never)]
fn weigh(items: &[Item]) -> f64 {
    let mut sum = 0.0;
    for item in items {
        if item.id % 3 != 0 {
            sum += item.weight;
        }
    }
    sum
}

#[inline(never)]
fn index(items: &[Item]) -> u32 {
    // The default hasher's seed is random: the runs would differ.
    let mut by_name: HashMap<&str, &Item, BuildHasherDefault<DefaultHasher>> = HashMap::default();
    for item in items {
        by_name.insert(&item.name, item);
    }
    items.iter().filter_map(|item| by_name.get(item.name.as_str())).map(|item| item.id).sum()
}

#[inline(never)]
fn order(numbers: &[u32]) -> u64 {
    let mut map = BTreeMap::new();
    for (idx, number) in numbers.iter().enumerate() {
        *map.entry(number % 17).or_insert(0u64) += idx as u64;
    }
    map.remove(&3);
    map.range(2..12).map(|(key, value)| u64::from(*key) * value).sum()
}

#[inline(never)]
fn shortest(n: usize) -> u32 {
    let mut distance = vec![u32::MAX; n];
    let mut heap = BinaryHeap::new();
    distance[0] = 0;
    heap.push((0i64, 0usize));
    while let Some((cost, at)) = heap.pop() {
        let cost = -cost as u32;
        if cost > distance[at] {
            continue;
        }
        for (next, edge) in [((at * 2 + 1) % n, 3), ((at + 7) % n, 5)] {
            if cost + edge < distance[next] {
                distance[next] = cost + edge;
                heap.push((-i64::from(cost + edge), next));
            }
        }
    }
    distance.iter().sum()
}

fn main() {
    let items: Vec<Item> = (0..7)
        .map(|id| Item { id, name: format!("item {id}"), weight: f64::from(id) * 0.5 })
        .collect();
    let mut total = weigh(&items) as u64 + u64::from(index(&items));
    let numbers: Vec<u32> = (0..24).map(|i| i * 7919 % 1009).collect();
    total += order(&numbers) + u64::from(shortest(9));
    let mut queue: VecDeque<u32> = numbers.iter().copied().take(12).collect();
    while queue.len() > 1 {
        let first = queue.pop_front().unwrap_or(0);
        if let Some(second) = queue.front_mut() {
            *second ^= first;
        }
        if first % 5 == 1 {
            queue.push_back(first / 2);
        }
    }
    std::process::exit((total + u64::from(queue[0])) as i32 & 1);
}
