//! Clouds of points from a scanner that turns: packets of bytes, filters in a chain, a k-d tree in any number of
//! dimensions, normals, planes by chance, clusters, registration against a map of voxels.
#[path = "../heap.rs"]
mod heap;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::ops::{Add, AddAssign, Index, IndexMut, Mul, Sub};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vec3 {
    x: f32,
    y: f32,
    z: f32,
}

impl Vec3 {
    const fn new(x: f32, y: f32, z: f32) -> Self {
        Vec3 { x, y, z }
    }
    fn dot(self, o: Self) -> f32 {
        self.x * o.x + self.y * o.y + self.z * o.z
    }
    fn cross(self, o: Self) -> Self {
        Vec3::new(self.y * o.z - self.z * o.y, self.z * o.x - self.x * o.z, self.x * o.y - self.y * o.x)
    }
    fn normalized(self) -> Self {
        self * (1.0 / self.dot(self).sqrt().max(1e-12))
    }
}

impl Add for Vec3 {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Vec3::new(self.x + o.x, self.y + o.y, self.z + o.z)
    }
}
impl Sub for Vec3 {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        Vec3::new(self.x - o.x, self.y - o.y, self.z - o.z)
    }
}
impl Mul<f32> for Vec3 {
    type Output = Self;
    fn mul(self, s: f32) -> Self {
        Vec3::new(self.x * s, self.y * s, self.z * s)
    }
}
impl AddAssign for Vec3 {
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Matrix<const R: usize, const C: usize>([[f64; C]; R]);

impl<const R: usize, const C: usize> Default for Matrix<R, C> {
    fn default() -> Self {
        Matrix([[0.0; C]; R])
    }
}
impl<const R: usize, const C: usize> Index<(usize, usize)> for Matrix<R, C> {
    type Output = f64;
    fn index(&self, (r, c): (usize, usize)) -> &f64 {
        &self.0[r][c]
    }
}
impl<const R: usize, const C: usize> IndexMut<(usize, usize)> for Matrix<R, C> {
    fn index_mut(&mut self, (r, c): (usize, usize)) -> &mut f64 {
        &mut self.0[r][c]
    }
}

impl<const N: usize> Matrix<N, N> {
    /// Solves for b in place; the matrix becomes its lower triangle.
    fn solve(&mut self, b: &mut [f64; N]) -> bool {
        for i in 0..N {
            for j in 0..=i {
                let sum: f64 = (0..j).map(|k| self[(i, k)] * self[(j, k)]).sum();
                let rest = self[(i, j)] - sum;
                if i == j && rest <= 1e-9 {
                    return false;
                }
                self[(i, j)] = if i == j { rest.sqrt() } else { rest / self[(j, j)] };
            }
        }
        for i in 0..N {
            b[i] = (b[i] - (0..i).map(|k| self[(i, k)] * b[k]).sum::<f64>()) / self[(i, i)];
        }
        for i in (0..N).rev() {
            b[i] = (b[i] - (i + 1..N).map(|k| self[(k, i)] * b[k]).sum::<f64>()) / self[(i, i)];
        }
        true
    }
}

#[derive(Clone, Copy, Default)]
pub struct Pose {
    rotation: [Vec3; 3],
    translation: Vec3,
}

impl Pose {
    fn identity() -> Self {
        Pose { rotation: [Vec3::new(1.0, 0.0, 0.0), Vec3::new(0.0, 1.0, 0.0), Vec3::new(0.0, 0.0, 1.0)], translation: Vec3::default() }
    }
    fn apply(&self, p: Vec3) -> Vec3 {
        Vec3::new(self.rotation[0].dot(p), self.rotation[1].dot(p), self.rotation[2].dot(p)) + self.translation
    }
    fn nudge(&mut self, angles: Vec3, shift: Vec3) {
        let [a, b, c] = self.rotation;
        self.rotation[0] = (a - b * angles.z + c * angles.y).normalized();
        self.rotation[1] = (b + a * angles.z - c * angles.x).normalized();
        self.rotation[2] = (c - a * angles.y + b * angles.x).normalized();
        self.translation += angles.cross(self.translation) + shift;
    }
}

// ---- a cloud and what comes in ----

#[derive(Clone, Copy, Default)]
pub struct Point {
    position: Vec3,
    intensity: u8,
    ring: u8,
    label: u16,
}

#[derive(Default)]
pub struct Cloud {
    points: Vec<Point>,
    normals: Vec<Vec3>,
    stamp: u64,
}

impl Cloud {
    fn with_capacity(capacity: usize) -> Self {
        Cloud {
            points: heap::of::<Point, _>(|| Vec::with_capacity(capacity)),
            normals: heap::of::<Vec3, _>(|| Vec::with_capacity(capacity)),
            stamp: 0,
        }
    }
}

pub struct Scanner {
    packet: Vec<u8>,
    cosines: Vec<f32>,
    azimuth: u32,
    packets: u64,
}

impl Scanner {
    const RINGS: usize = 8;
    const STEPS: u32 = 90;

    /// A room with pillars, seen at a distance of centimetres.
    #[inline(never)]
    fn scan(&mut self, at: Vec3) {
        self.packet.clear();
        self.packet.extend_from_slice(&[0xff, 0xee]);
        self.packet.extend_from_slice(&(self.azimuth as u16).to_le_bytes());
        for ring in 0..Self::RINGS {
            let (c, s) = (self.cosines[self.azimuth as usize], self.cosines[(self.azimuth + Self::STEPS * 3 / 4) as usize % Self::STEPS as usize]);
            let slope = ring as f32 * 0.06 - 0.3;
            let wall = |position: f32, direction: f32| {
                let distance = if direction > 0.0 { (12.0 - position) / direction } else { (-12.0 - position) / direction };
                if direction.abs() < 1e-3 { 1e3 } else { distance }
            };
            let mut distance = wall(at.x, c).min(wall(at.y, s));
            if slope < 0.0 {
                distance = distance.min(1.8 / -slope);
            }
            for pillar in [Vec3::new(5.0, 3.0, 0.0), Vec3::new(-4.0, 6.0, 0.0), Vec3::new(2.0, -7.0, 0.0)] {
                let (dx, dy) = (pillar.x - at.x, pillar.y - at.y);
                let along = dx * c + dy * s;
                if along > 0.0 && (dx * s - dy * c).abs() < 0.8 {
                    distance = distance.min(along);
                }
            }
            let noise = (heap::random() >> 40) as u16 & 3;
            self.packet.extend_from_slice(&((distance * 200.0) as u16 + noise).to_le_bytes());
            self.packet.push(40 + ring as u8 * 9 + noise as u8);
        }
        self.azimuth = (self.azimuth + 1) % Self::STEPS;
        self.packets += 1;
    }

    #[inline(never)]
    fn decode(&self, cloud: &mut Cloud) -> Result<(), &'static str> {
        let (head, body) = self.packet.split_first_chunk::<4>().ok_or("short")?;
        if head[..2] != [0xff, 0xee] {
            return Err("no packet");
        }
        let azimuth = u16::from_le_bytes([head[2], head[3]]) as usize;
        let (c, s) = (self.cosines[azimuth], self.cosines[(azimuth + Self::STEPS as usize * 3 / 4) % Self::STEPS as usize]);
        for (ring, reading) in body.chunks_exact(3).enumerate() {
            let distance = f32::from(u16::from_le_bytes([reading[0], reading[1]])) / 200.0;
            let position = Vec3::new(distance * c, distance * s, distance * (ring as f32 * 0.06 - 0.3));
            cloud.points.push(Point { position, intensity: reading[2], ring: ring as u8, label: 0 });
        }
        Ok(())
    }
}

// ---- filters ----

pub trait CloudFilter {
    fn run(&mut self, cloud: &mut Cloud);
    fn name(&self) -> &str;
}

pub struct Crop {
    min: Vec3,
    max: Vec3,
    dropped: u64,
}

impl CloudFilter for Crop {
    #[inline(never)]
    fn run(&mut self, cloud: &mut Cloud) {
        let before = cloud.points.len();
        let inside = |v: f32, low: f32, high: f32| (low..=high).contains(&v);
        cloud.points.retain(|p| {
            let v = p.position;
            inside(v.x, self.min.x, self.max.x) && inside(v.y, self.min.y, self.max.y) && inside(v.z, self.min.z, self.max.z)
        });
        self.dropped += (before - cloud.points.len()) as u64;
    }
    fn name(&self) -> &str {
        "crop"
    }
}

#[derive(Clone, Copy, Default)]
pub struct Bin {
    sum: Vec3,
    count: u32,
    intensity: u32,
    ring: u8,
}

pub struct Downsample {
    size: f32,
    cells: HashMap<(i32, i32, i32), Bin>,
}

impl CloudFilter for Downsample {
    #[inline(never)]
    fn run(&mut self, cloud: &mut Cloud) {
        self.cells.clear();
        for p in &cloud.points {
            let v = p.position * (1.0 / self.size);
            let cell = self.cells.entry((v.x.floor() as i32, v.y.floor() as i32, v.z.floor() as i32)).or_default();
            cell.sum += p.position;
            cell.count += 1;
            cell.intensity += u32::from(p.intensity);
            cell.ring = p.ring;
        }
        cloud.points.clear();
        for cell in self.cells.values() {
            let position = cell.sum * (1.0 / cell.count as f32);
            cloud.points.push(Point { position, intensity: (cell.intensity / cell.count) as u8, ring: cell.ring, label: 0 });
        }
    }
    fn name(&self) -> &str {
        "downsample"
    }
}

// ---- neighbours ----

#[derive(Clone, Copy)]
pub enum KdNode {
    Inner { axis: u8, split: f32, right: u32 },
    Leaf { start: u32, len: u32 },
}

pub struct KdTree<const D: usize> {
    nodes: Vec<KdNode>,
    order: Vec<u32>,
    coordinates: [Vec<f32>; D],
}

#[derive(Clone, Copy, PartialEq)]
pub struct Neighbour {
    distance: f32,
    index: u32,
}

impl Eq for Neighbour {}
impl PartialOrd for Neighbour {
    fn partial_cmp(&self, o: &Self) -> Option<Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Neighbour {
    fn cmp(&self, o: &Self) -> Ordering {
        self.distance.total_cmp(&o.distance)
    }
}

impl<const D: usize> KdTree<D> {
    const LEAF: usize = 8;

    fn new(capacity: usize) -> Self {
        KdTree {
            nodes: heap::of::<KdNode, _>(|| Vec::with_capacity(capacity)),
            order: heap::of::<u32, _>(|| Vec::with_capacity(capacity)),
            coordinates: std::array::from_fn(|_| heap::of::<f32, _>(|| Vec::with_capacity(capacity))),
        }
    }

    #[inline(never)]
    fn build(&mut self, points: impl Iterator<Item = [f32; D]>) {
        self.nodes.clear();
        self.order.clear();
        self.coordinates.iter_mut().for_each(Vec::clear);
        for (i, p) in points.enumerate() {
            self.order.push(i as u32);
            for (column, v) in self.coordinates.iter_mut().zip(p) {
                column.push(v);
            }
        }
        let len = self.order.len();
        self.divide(0, len);
    }

    fn divide(&mut self, start: usize, end: usize) {
        if end - start <= Self::LEAF {
            self.nodes.push(KdNode::Leaf { start: start as u32, len: (end - start) as u32 });
            return;
        }
        let spread = |column: &Vec<f32>| {
            let (low, high) = self.order[start..end].iter().fold((f32::MAX, f32::MIN), |(low, high), &i| {
                let v = column[i as usize];
                (low.min(v), high.max(v))
            });
            high - low
        };
        let axis = (0..D).max_by(|&a, &b| spread(&self.coordinates[a]).total_cmp(&spread(&self.coordinates[b]))).unwrap();
        let middle = (start + end) / 2;
        let column = &self.coordinates[axis];
        self.order[start..end].select_nth_unstable_by(middle - start, |&a, &b| column[a as usize].total_cmp(&column[b as usize]));
        let split = column[self.order[middle] as usize];
        let at = self.nodes.len();
        self.nodes.push(KdNode::Inner { axis: axis as u8, split, right: 0 });
        self.divide(start, middle);
        let here = self.nodes.len() as u32;
        if let KdNode::Inner { right, .. } = &mut self.nodes[at] {
            *right = here;
        }
        self.divide(middle, end);
    }

    fn distance(&self, p: &[f32; D], i: u32) -> f32 {
        (0..D).map(|d| self.coordinates[d][i as usize] - p[d]).map(|d| d * d).sum()
    }

    #[inline(never)]
    fn nearest(&self, p: &[f32; D], count: usize, found: &mut BinaryHeap<Neighbour>) {
        found.clear();
        self.descend(0, p, count, found);
    }

    fn descend(&self, node: usize, p: &[f32; D], count: usize, found: &mut BinaryHeap<Neighbour>) {
        match self.nodes[node] {
            KdNode::Leaf { start, len } => {
                for &index in &self.order[start as usize..(start + len) as usize] {
                    let distance = self.distance(p, index);
                    if found.len() < count {
                        found.push(Neighbour { distance, index });
                    } else if let Some(mut worst) = found.peek_mut().filter(|worst| distance < worst.distance) {
                        *worst = Neighbour { distance, index };
                    }
                }
            }
            KdNode::Inner { axis, split, right } => {
                let beyond = p[axis as usize] - split;
                let (near, far) = if beyond < 0.0 { (node + 1, right as usize) } else { (right as usize, node + 1) };
                self.descend(near, p, count, found);
                if found.len() < count || found.peek().is_some_and(|worst| beyond * beyond < worst.distance) {
                    self.descend(far, p, count, found);
                }
            }
        }
    }

    #[inline(never)]
    fn within(&self, p: &[f32; D], radius: f32, found: &mut Vec<u32>) {
        found.clear();
        let mut stack = [0u32; 32];
        let mut top = 1;
        while top > 0 {
            top -= 1;
            match self.nodes[stack[top] as usize] {
                KdNode::Leaf { start, len } => {
                    let near = self.order[start as usize..(start + len) as usize].iter().filter(|&&i| self.distance(p, i) < radius * radius);
                    found.extend(near);
                }
                KdNode::Inner { axis, split, right } => {
                    let (beyond, left) = (p[axis as usize] - split, stack[top] + 1);
                    if beyond < radius {
                        stack[top] = left;
                        top += 1;
                    }
                    if beyond > -radius {
                        stack[top] = right;
                        top += 1;
                    }
                }
            }
        }
    }
}

fn coordinates(v: Vec3) -> [f32; 3] {
    [v.x, v.y, v.z]
}

#[inline(never)]
fn estimate_normals(cloud: &mut Cloud, tree: &KdTree<3>, found: &mut BinaryHeap<Neighbour>) {
    cloud.normals.clear();
    for p in &cloud.points {
        tree.nearest(&coordinates(p.position), 6, found);
        let count = found.len() as f32;
        let mean = found.iter().fold(Vec3::default(), |sum, n| sum + cloud.points[n.index as usize].position) * (1.0 / count);
        let mut covariance = [Vec3::default(); 3];
        for n in found.iter() {
            let d = cloud.points[n.index as usize].position - mean;
            covariance[0] += d * d.x;
            covariance[1] += d * d.y;
            covariance[2] += d * d.z;
        }
        // The direction of least spread: across the two best rows.
        let normal = covariance[0].cross(covariance[1]) + covariance[1].cross(covariance[2]) + covariance[2].cross(covariance[0]);
        let normal = normal.normalized();
        cloud.normals.push(if normal.dot(p.position) > 0.0 { normal * -1.0 } else { normal });
    }
}

#[derive(Clone, Copy, Default)]
pub struct Plane {
    normal: Vec3,
    offset: f32,
    inliers: u32,
}

#[inline(never)]
fn find_plane(cloud: &mut Cloud, label: u16) -> Plane {
    let mut best = Plane::default();
    let free = |p: &Point| p.label == 0;
    for _ in 0..12 {
        let mut pick = || cloud.points[heap::random() as usize % cloud.points.len()].position;
        let (a, b, c) = (pick(), pick(), pick());
        let across = (b - a).cross(c - a);
        if across.dot(across) < 1e-3 {
            continue;
        }
        let normal = across.normalized();
        let offset = normal.dot(a);
        let inliers = cloud.points.iter().filter(|p| free(p) && (normal.dot(p.position) - offset).abs() < 0.12).count() as u32;
        if inliers > best.inliers {
            best = Plane { normal, offset, inliers };
        }
    }
    for p in cloud.points.iter_mut().filter(|p| free(p)) {
        if (best.normal.dot(p.position) - best.offset).abs() < 0.12 {
            p.label = label;
        }
    }
    best
}

pub struct Cluster {
    members: Vec<u32>,
    min: Vec3,
    max: Vec3,
    age: u32,
}

#[derive(Default)]
pub struct Segmenter {
    queue: VecDeque<u32>,
    near: Vec<u32>,
    clusters: Vec<Cluster>,
    used: usize,
}

impl Segmenter {
    #[inline(never)]
    fn run(&mut self, cloud: &mut Cloud, tree: &KdTree<3>) {
        self.used = 0;
        for seed in 0..cloud.points.len() as u32 {
            if cloud.points[seed as usize].label != 0 {
                continue;
            }
            if self.used == self.clusters.len() {
                let members = heap::of::<u32, _>(|| Vec::with_capacity(64));
                self.clusters.push(Cluster { members, min: Vec3::default(), max: Vec3::default(), age: 0 });
            }
            let cluster = &mut self.clusters[self.used];
            cluster.members.clear();
            cluster.age += 1;
            (cluster.min, cluster.max) = (Vec3::new(1e9, 1e9, 1e9), Vec3::new(-1e9, -1e9, -1e9));
            let label = 100 + self.used as u16;
            cloud.points[seed as usize].label = label;
            self.queue.push_back(seed);
            while let Some(i) = self.queue.pop_front() {
                let p = cloud.points[i as usize].position;
                cluster.members.push(i);
                cluster.min = Vec3::new(cluster.min.x.min(p.x), cluster.min.y.min(p.y), cluster.min.z.min(p.z));
                cluster.max = Vec3::new(cluster.max.x.max(p.x), cluster.max.y.max(p.y), cluster.max.z.max(p.z));
                tree.within(&coordinates(p), 1.1, &mut self.near);
                for &other in &self.near {
                    let other_point = &mut cloud.points[other as usize];
                    if other_point.label == 0 {
                        other_point.label = label;
                        self.queue.push_back(other);
                    }
                }
            }
            if cluster.members.len() > 2 && self.used < 60 {
                self.used += 1;
            }
        }
    }
}

// ---- registration ----

#[derive(Clone, Copy, Default)]
pub struct Voxel {
    mean: Vec3,
    normal: Vec3,
    weight: f32,
    seen: u32,
}

pub struct VoxelMap {
    voxels: HashMap<(i32, i32, i32), Voxel>,
    pose: Pose,
    updates: u32,
}

impl VoxelMap {
    fn key(p: Vec3) -> (i32, i32, i32) {
        let v = p * (1.0 / 0.75);
        (v.x.floor() as i32, v.y.floor() as i32, v.z.floor() as i32)
    }

    /// Least squares of the distances to planes.
    #[inline(never)]
    fn align(&mut self, cloud: &Cloud) -> f64 {
        let mut error = 0.0;
        for _ in 0..3 {
            let (mut a, mut b, mut used) = (Matrix::<6, 6>::default(), [0.0; 6], 0);
            error = 0.0;
            for p in &cloud.points {
                let moved = self.pose.apply(p.position);
                let Some(voxel) = self.voxels.get(&Self::key(moved)) else { continue };
                let residual = voxel.normal.dot(moved - voxel.mean);
                if residual.abs() > 0.5 {
                    continue;
                }
                let turn = moved.cross(voxel.normal);
                let row = [turn.x, turn.y, turn.z, voxel.normal.x, voxel.normal.y, voxel.normal.z].map(f64::from);
                for i in 0..6 {
                    for j in 0..6 {
                        a[(i, j)] += row[i] * row[j];
                    }
                    b[i] -= row[i] * f64::from(residual);
                }
                error += f64::from(residual * residual);
                used += 1;
            }
            (0..6).for_each(|i| a[(i, i)] += 1.0);
            if used < 20 || !a.solve(&mut b) {
                break;
            }
            let [p, q, r, x, y, z] = b.map(|v| v as f32 * 0.5);
            self.pose.nudge(Vec3::new(p, q, r), Vec3::new(x, y, z));
        }
        error
    }

    #[inline(never)]
    fn merge(&mut self, cloud: &Cloud) {
        self.updates += 1;
        if self.voxels.len() > 1500 {
            let limit = self.updates.saturating_sub(30);
            self.voxels.retain(|_, voxel| voxel.seen >= limit);
        }
        for (p, &normal) in cloud.points.iter().zip(&cloud.normals) {
            let moved = self.pose.apply(p.position);
            let voxel = self.voxels.entry(Self::key(moved)).or_default();
            voxel.weight = (voxel.weight + 1.0).min(20.0);
            voxel.mean += (moved - voxel.mean) * (1.0 / voxel.weight);
            voxel.normal = (voxel.normal * 0.8 + normal * 0.2).normalized();
            voxel.seen = self.updates;
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    points: u32,
    clusters: u32,
    floor: u32,
    error: f64,
}

fn main() {
    heap::init();
    let cosines = heap::of::<f32, _>(|| (0..Scanner::STEPS).map(|i| (i as f32 / Scanner::STEPS as f32 * std::f32::consts::TAU).cos()).collect());
    let scanner = Scanner { packet: heap::of::<u8, _>(|| Vec::with_capacity(64)), cosines, azimuth: 0, packets: 0 };
    let mut scanner = heap::of::<Scanner, _>(|| Box::new(scanner));
    let cells = heap::table::<(i32, i32, i32), Bin, _>(|| HashMap::with_capacity(880));
    let mut filters = heap::of::<Box<dyn CloudFilter>, _>(|| Vec::<Box<dyn CloudFilter>>::with_capacity(2));
    filters.push(heap::of::<Crop, _>(|| Box::new(Crop { min: Vec3::new(-20.0, -20.0, -4.0), max: Vec3::new(20.0, 20.0, 4.0), dropped: 0 })));
    filters.push(heap::of::<Downsample, _>(|| Box::new(Downsample { size: 0.5, cells })));
    let mut cloud = heap::of::<Cloud, _>(|| Box::<Cloud>::default());
    *cloud = Cloud::with_capacity(1024);
    let mut tree = KdTree::<3>::new(1024);
    let mut rings = KdTree::<2>::new(1024);
    let mut found = heap::of::<Neighbour, _>(|| BinaryHeap::with_capacity(16));
    let segmenter = Segmenter {
        queue: heap::of::<u32, _>(|| VecDeque::with_capacity(1024)),
        near: heap::of::<u32, _>(|| Vec::with_capacity(1024)),
        clusters: heap::of::<Cluster, _>(|| Vec::with_capacity(64)),
        used: 0,
    };
    let mut segmenter = heap::of::<Segmenter, _>(|| Box::new(segmenter));
    let voxels = heap::table::<(i32, i32, i32), Voxel, _>(|| HashMap::with_capacity(3500));
    let map = VoxelMap { voxels, pose: Pose::identity(), updates: 0 };
    let mut map = heap::of::<VoxelMap, _>(|| Box::new(map));
    let mut history: BTreeMap<u64, Summary> = BTreeMap::new();
    let mut sum = 0.0;
    for round in 0u64.. {
        if !heap::more() {
            break;
        }
        let there_and_back = |period: u64| (round % (2 * period)).min(2 * period - round % (2 * period)) as f32 / period as f32;
        let at = Vec3::new(there_and_back(90) * 2.0, there_and_back(140) * 1.5 - 1.0, 0.0);
        cloud.points.clear();
        cloud.stamp = round;
        for _ in 0..Scanner::STEPS {
            scanner.scan(at);
            scanner.decode(&mut cloud).unwrap();
        }
        for filter in &mut filters {
            filter.run(&mut cloud);
        }
        tree.build(cloud.points.iter().map(|p| coordinates(p.position)));
        estimate_normals(&mut cloud, &tree, &mut found);
        let floor = find_plane(&mut cloud, 1);
        let wall = find_plane(&mut cloud, 2);
        segmenter.run(&mut cloud, &tree);
        rings.build(cloud.points.iter().map(|p| [p.position.x, p.position.y]));
        for i in (0..cloud.points.len()).step_by(9) {
            let p = cloud.points[i].position;
            rings.nearest(&[p.x + 0.5, p.y], 3, &mut found);
            sum += found.iter().map(|n| f64::from(n.distance)).sum::<f64>();
        }
        let error = map.align(&cloud);
        map.merge(&cloud);
        let summary = Summary { points: cloud.points.len() as u32, clusters: segmenter.used as u32, floor: floor.inliers + wall.inliers, error };
        heap::tree::<u64, Summary, _>(|| history.insert(round % 1000, summary));
        if history.len() > 60 {
            history.pop_first();
        }
        sum += history.range(round.saturating_sub(5) % 1000..).take(5).map(|(_, s)| s.error + f64::from(s.clusters)).sum::<f64>();
    }
    if std::env::var("VERBOSE").is_ok() {
        println!("{:?}, {} voxels, {:?}, {}", history.values().last(), map.voxels.len(), map.pose.translation, filters.iter().map(|f| f.name()).collect::<Vec<_>>().join(" "));
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
