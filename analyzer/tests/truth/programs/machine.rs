// Enums and match: a tokenizer, an expression tree, a little machine, niches and large variants.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Number(i64),
    Sign(char),
    Open,
    Close,
}

enum Tree {
    Leaf(i64),
    Pair { left: Box<Tree>, right: Box<Tree>, sign: char },
    Negated(Box<Tree>),
}

enum Order {
    Push(i32),
    Add,
    Sub,
    JumpUnlessZero(usize),
    Duplicate,
    Store([i32; 2]),
    Halt,
}

#[inline(never)]
fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut number: Option<i64> = None;
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10) {
            number = Some(number.unwrap_or(0) * 10 + i64::from(digit));
            continue;
        }
        if let Some(value) = number.take() {
            found.push(Token::Number(value));
        }
        match c {
            '(' => found.push(Token::Open),
            ')' => found.push(Token::Close),
            '+' | '-' | '*' => found.push(Token::Sign(c)),
            _ => {}
        }
    }
    found.extend(number.map(Token::Number));
    found
}

#[inline(never)]
fn parse(tokens: &[Token], at: &mut usize) -> Tree {
    let mut left = match tokens.get(*at) {
        Some(Token::Number(value)) => {
            *at += 1;
            Tree::Leaf(*value)
        }
        Some(Token::Open) => {
            *at += 1;
            let inner = parse(tokens, at);
            *at += 1;
            inner
        }
        Some(Token::Sign('-')) => {
            *at += 1;
            return Tree::Negated(Box::new(parse(tokens, at)));
        }
        _ => return Tree::Leaf(0),
    };
    while let Some(Token::Sign(sign)) = tokens.get(*at) {
        *at += 1;
        let right = match tokens.get(*at) {
            Some(Token::Number(value)) => {
                *at += 1;
                Tree::Leaf(*value)
            }
            _ => parse(tokens, at),
        };
        left = Tree::Pair { left: Box::new(left), right: Box::new(right), sign: *sign };
    }
    left
}

#[inline(never)]
fn value(tree: &Tree) -> i64 {
    match tree {
        Tree::Leaf(value) => *value,
        Tree::Negated(inner) => -value(inner),
        Tree::Pair { left, right, sign } => {
            let (left, right) = (value(left), value(right));
            match sign {
                '+' => left.wrapping_add(right),
                '-' => left.wrapping_sub(right),
                _ => left.wrapping_mul(right),
            }
        }
    }
}

#[inline(never)]
fn execute(program: &[Order]) -> i32 {
    let (mut stack, mut pc, mut memory) = (Vec::new(), 0, [0; 4]);
    while let Some(order) = program.get(pc) {
        pc += 1;
        match order {
            Order::Push(value) => stack.push(*value),
            Order::Add | Order::Sub => {
                let (Some(right), Some(left)) = (stack.pop(), stack.pop()) else { return -1 };
                stack.push(if matches!(order, Order::Add) { left + right } else { left - right });
            }
            Order::Duplicate => stack.extend(stack.last().copied()),
            Order::JumpUnlessZero(to) if stack.last() != Some(&0) => pc = *to,
            Order::JumpUnlessZero(_) => {}
            Order::Store([slot, add]) => memory[*slot as usize & 3] += add,
            Order::Halt => break,
        }
    }
    memory[1] + stack.len() as i32
}

fn main() {
    let mut total = 0;
    for text in ["1+2*(3-4)", "((12)-(7*-3))+100", "-(5-6-7)*8+(9)"] {
        for _ in 0..2 {
            total += value(&parse(&tokens(text), &mut 0));
        }
    }
    let program = [
        Order::Push(15),
        Order::Duplicate,
        Order::Push(1),
        Order::Sub,
        Order::Store([1, 3]),
        Order::JumpUnlessZero(1),
        Order::Add,
        Order::Halt,
    ];
    total += i64::from(execute(&program));
    std::process::exit(total as i32 & 1);
}
